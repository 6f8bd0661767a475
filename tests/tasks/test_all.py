"""Rules of every task: the trainer's contract, and nothing that reads the device."""

import dataclasses
import io

import pytest
import torch
from tensordict import TensorDict
from torch._subclasses.fake_tensor import DynamicOutputShapeException, FakeTensorMode

import tasks
from gpurobot.learn.env import VecEnv
from gpurobot.learn.random import Random
from physics.camera.renderer import blank_images
from physics.parity import MujocoSimulation
from physics.state.layout import field_shapes
from tasks import base
from tasks.core.errors import TaskError
from tasks.motion import transitions
from tests.compiled import nothing_new, tracing
from tests.gpurobot.tape import no_reads
from tests.instances import grouped
from tests.tasks.conftest import SHAKEN


@pytest.fixture(autouse=True)
def _few_pairs(monkeypatch):
  """A reference of 16 walks in place of 768: their features are computed for eight at a time."""
  monkeypatch.setattr(transitions, "SPEEDS", 2)
  monkeypatch.setattr(transitions, "PHASES", 8)


@dataclasses.dataclass
class Unreal:
  """A simulation of fake tensors: fields with shapes and types, and nothing in them."""

  model: object
  num_envs: int

  def __post_init__(self):
    for name, shape in field_shapes(self.model).items():
      setattr(self, name, torch.zeros(self.num_envs, *shape))
    self.ctrl = torch.zeros(self.num_envs, self.model.nu)
    for name in self.model.varied:
      setattr(self, name, torch.zeros(self.num_envs, *getattr(self.model, name).shape))
    self.overflow = torch.zeros(self.num_envs, dtype=torch.int32)

  def attach_rays(self, rays):
    """Return what does nothing, and where it would write distances."""
    return lambda: None, torch.zeros(self.num_envs, len(rays.origins))

  def attach_view(self, view):
    """Return what does nothing, a scene of zeros, and blank images."""
    scene, images = (
      torch.zeros(view.rows(self.model), self.num_envs),
      blank_images(view, self.num_envs, "cpu"),
    )
    return lambda _mask: None, scene, images

  def step(self, substeps, ctrl=None):
    """Do nothing."""

  def forward(self, mask=None):
    """Do nothing."""

  def reset(self, mask=None):
    """Do nothing."""


FEW_TILES = {"terrain_kinds": ["rubble"], "terrain_levels": 1}  # a terrain takes thousands of operations


def step_unreal(kind, real, **settings):
  """Reset and step environments like real ones that hold no numbers; return the last step."""
  with torch.device("cpu"), FakeTensorMode():
    config = dataclasses.replace(real.config, **settings)
    task = kind(config, 8, random=Random(0, 8), simulation=Unreal(real.model, 8))
    task.reset()
    return task.step(torch.zeros(8, task.num_actions))


def test_steps_need_no_numbers_and_no_engine_of_ours(chosen, make_task):
  """Tensors without numbers, and MuJoCo C as the engine, give the same shapes."""
  real = make_task(chosen)
  expected = real.reset(), real.step(torch.zeros(8, real.num_actions, device=real.device))
  unreal = step_unreal(type(real), real, **(FEW_TILES if "rough" in chosen else {}))
  with torch.device("cpu"):
    simulation = MujocoSimulation(real.model, 8, real.outputs)
    task = type(real)(real.config, 8, random=Random(0, 8), training=False, simulation=simulation)
    assert {*task.reset().keys()} == {*expected[0].keys()}
    there = task.step(torch.zeros(8, real.num_actions))
  for key in expected[1].keys(include_nested=True, leaves_only=True):
    assert unreal[key].shape == there[key].shape == expected[1][key].shape
    assert unreal[key].dtype == expected[1][key].dtype
    assert there[key].isfinite().all()


def test_a_task_that_reads_its_environments_is_caught(make_task):
  class Reading(tasks.load("cartpole").Task):
    def terminated(self):
      return super().terminated() & (self.sim.qpos.nonzero().sum() > 0)

  with pytest.raises(TaskError, match=DynamicOutputShapeException.__name__):
    step_unreal(Reading, make_task("cartpole"))


def assert_close(one: TensorDict, other: TensorDict) -> None:
  """Numbers are the same but for rounding: what torch does at once its compiler may do in two operations."""
  for key in one.keys(include_nested=True, leaves_only=True):
    torch.testing.assert_close(one[key], other[key], rtol=1e-4, atol=1e-4)


def tensors_equal(one: TensorDict, other: TensorDict) -> bool:
  keys = list(one.keys(include_nested=True, leaves_only=True))
  return all(one[key].equal(other[key]) for key in keys)


def assert_step(task: base.Task, step: TensorDict, limit: float) -> None:
  """Check the shapes, types and sums of a step, and that only ended episodes start anew."""
  for group, width in task.obs_dims.items():
    for values in (step["obs", group], step["final_obs", group]):
      assert values.shape == (8, width)
      assert values.dtype == torch.float32
      assert values.isfinite().all()
  assert {step[key].dtype for key in ("terminated", "truncated", "valid")} == {torch.bool}
  assert all(term.shape == (8,) for term in (*step["reward_terms"].values(), *step["metrics"].values()))
  torch.testing.assert_close(step["reward"], sum(step["reward_terms"].values()))
  assert step["reward"].abs().max() < limit
  ended = step["terminated"] | step["truncated"]
  assert not (step["terminated"] & step["truncated"]).any()
  assert step["final_obs", "policy"][~ended].equal(step["obs", "policy"][~ended])
  assert task.episode_steps.eq(0).equal(ended)


def test_a_task_keeps_the_trainers_contract(name, make_task, actions):
  """In steps, sums and types, without a look at the device; and a saved state goes on as it would have."""
  task, other = (make_task(name, training=True, episode_steps=15) for _ in range(2))
  assert isinstance(task, VecEnv)
  # Gymnasium pays HumanoidStandup for its height over a time step.
  limit = 500.0 if name == "gym/HumanoidStandup-v5" else 50.0
  first, *draws = actions(task, 41)
  obs = task.reset()
  assert {group: obs[group].shape[1] for group in task.obs_dims} == task.obs_dims
  task.step(first)  # makes what is made once
  ends = torch.zeros(8)
  for action in draws[:20]:
    with no_reads():  # nor tensors made from the host, as a CUDA graph asks
      step = task.step(action)
    assert_step(task, step, limit)
    ends += step["terminated"] | step["truncated"]
  file = io.BytesIO()
  torch.save(task.state_dict(), file)
  file.seek(0)
  expected = [task.step(action) for action in draws[20:]]
  other.reset()
  other.load_state_dict(torch.load(file, weights_only=True))
  for action, step in zip(draws[20:], expected, strict=True):
    again = other.step(action)
    assert tensors_equal(again, step)
    ends += again["terminated"] | again["truncated"]
  assert (ends >= 2).all()
  assert task.counters()["nonfinite"].item() == 0


def shown(task) -> dict[str, torch.Tensor]:
  """Return what is derived from the state, and the newest images of the cameras."""
  derived = {key: value for key, value in task._memory().items() if key.startswith("derived")}
  images = {f"{own.camera.name} {kind}": past[-1] for own in task.cameras for kind, past in own._past.items()}
  return {key: value.clone() for key, value in (derived | images).items()}


def test_after_an_event_what_is_observed_is_of_one_moment(chosen, make_task, actions, monkeypatch):
  """Where the state has jumped, derived quantities and images follow; elsewhere nothing changes."""
  pair = task, other = make_task(chosen), make_task(chosen)
  moved, seen = torch.arange(8) % 2 == 0, list[dict[str, torch.Tensor]]()

  def jump():
    names = ["qpos", "qvel", *(["mocap_pos"] if task.model.nmocap else [])]
    return {own: getattr(task.sim, own) + 0.1 for own in names}

  def watched(one, observe):
    return lambda: (seen.append(shown(one)), observe())[1]

  def dropping(sim, step):
    return lambda *args: (step(*args), sim.overflow.fill_(3))

  for one in pair:
    one.reset()
    one.episode_steps.fill_(59)  # all cameras see in the next one
    monkeypatch.setattr(one, "observe", watched(one, one.observe))
    monkeypatch.setattr(one.sim, "step", dropping(one.sim, one.sim.step))
    monkeypatch.setattr(one, "_reset", lambda *_: None)  # the state stays as it was observed
  task.every(1.0, 1.0, jump)
  task.events["jump"].left.copy_(torch.where(moved, task.dt, 1.0))
  for one in pair:
    one.step(actions(task, 1)[0])
  assert task.counters()["overflow"] == other.counters()["overflow"] > 0
  (found, _), (expected, _) = seen[:2], seen[2:]
  task.sim.forward()
  for camera in task.cameras:
    camera.restart(moved)
  for key, fresh in shown(task).items():
    assert torch.equal(found[key][moved], fresh[moved]), key
    assert torch.equal(found[key][~moved], expected[key][~moved]), key


def test_seed_and_global_index_alone_decide_the_numbers(chosen, make_task, actions):
  """Neither a split of the environments nor a validation changes them; another seed does.

  In multiples of 32, that is: torch computes a remainder of its vector loops by other functions.
  """
  whole = make_task(chosen, num_envs=64, training=True, episode_steps=15)
  words = {"num_envs": 32, "training": True, "episode_steps": 15}
  first, second, other = (
    make_task(chosen, offset=at, seed=seed, **words) for at, seed in ((0, 0), (32, 0), (0, 1))
  )
  first._validated = False  # as where a task makes its own simulation
  starts = [task.reset() for task in (whole, first, second, other)]
  assert tensors_equal(starts[0], torch.cat(starts[1:3]))
  assert not tensors_equal(starts[1], starts[3])
  for action in actions(whole, 30):
    halves = [part.step(half) for part, half in zip((first, second), action.split(32), strict=True)]
    assert tensors_equal(whole.step(action), torch.cat(halves))


# They have all parts of a step: commands, cameras, terrains, noise, events.
COMPILED = ["cartpole_pixels", "quadruped_rough", str(SHAKEN)]


@pytest.mark.parametrize("task_name", grouped(COMPILED))
def test_torchs_compiler_follows_a_step(task_name, make_task, actions, monkeypatch):
  """From one launch of the simulation to the next, and for good after two steps."""
  task, expected = (make_task(task_name, training=True) for _ in range(2))
  draws = actions(task, 4)
  for one in (task, expected):
    one.reset()
    one.step(draws[0])  # as in a validation
  with tracing(monkeypatch):
    step = torch.compile(task.step, dynamic=False)
    for action in draws[1:3]:
      assert_close(step(action), expected.step(action))
    with nothing_new():
      assert_close(step(draws[3]), expected.step(draws[3]))
