"""Environments for the tests of tasks, small and without a random initial phase unless asked for."""

from collections.abc import Callable, Iterator
from contextlib import nullcontext
from pathlib import Path

import mujoco
import pytest
import torch

import physics
import tasks
from gpurobot.learn.random import Random
from tasks import base
from tests.instances import grouped

MakeTask = Callable[..., base.Task]
MODELS: dict[object, physics.Model] = {}  # the latest, by scene and what varies
MOST_MODELS = 12
# Settings of tasks that are big by themselves.
SMALL_TERRAIN = {"terrain_levels": 3, "terrain_size": 4.0}
SMALL = {"quadruped_rough": SMALL_TERRAIN, "quadruped_rough_depth": SMALL_TERRAIN}
# The tasks of dm/ share most of their code: these have all that one of them may have. tests/tasks/dm steps
# the others in MuJoCo C, without a kernel.
OF_DM = [
  f"dm/{name}"
  for name in (
    "acrobot_swingup",
    "finger_turn_easy",
    "lqr_lqr_2_1",
    "manipulator_insert_peg",
    "point_mass_hard",
    "quadruped_walk",
  )
]
NAMES = [name for name in tasks.available() if not name.startswith("dm/")] + OF_DM
SHAKEN = Path(__file__).with_name("shaken_cartpole.py")  # with all that a task may have
# One of each family; the file of every other task has its own tests, which step it too.
CHOSEN = [
  "ant",
  "cartpole_pixels",
  "cube_lift",
  "dm/point_mass_hard",
  "gym/Hopper-v5",
  "humanoid_amp",
  "quadcopter",
  "quadruped_rough",
  str(SHAKEN),
]


# One process builds the kernel of a task, and makes all tests with it.
@pytest.fixture(scope="session", params=grouped((*NAMES, str(SHAKEN))))
def name(request: pytest.FixtureRequest) -> str:
  """Every task of the folder, and one that has all that a task may have."""
  return request.param


@pytest.fixture(scope="session", params=grouped(CHOSEN))
def chosen(request: pytest.FixtureRequest) -> str:
  """Tasks with all that the base offers, for what it does alike for all."""
  return request.param


@pytest.fixture(autouse=True)
def _on_device(device: torch.device) -> Iterator[None]:
  """Put what a test makes without a word of a device where its tasks are."""
  with nullcontext() if device.type == "cpu" else device:
    yield


@pytest.fixture(autouse=True, scope="module")
def _models_are_shared() -> Iterator[None]:
  """Give tasks of one scene one model, and with it its traced program: tracing takes seconds."""
  make = base.Task.make_model.__func__

  def share(kind: type[base.Task], config: object) -> physics.Model:
    scene = kind.scene(config)
    if isinstance(scene, mujoco.MjSpec) and scene.hfields:  # made anew for each task
      scene.compile()
      scene = scene.to_xml()
    key = scene, tuple(kind.vary), kind.unsupported
    if key not in MODELS:
      if len(MODELS) == MOST_MODELS:
        MODELS.pop(next(iter(MODELS)))
      MODELS[key] = make(kind, config)
    return MODELS[key]

  with pytest.MonkeyPatch.context() as patch:
    patch.setattr(base.Task, "make_model", classmethod(share))
    yield


@pytest.fixture
def make_task(device: torch.device) -> MakeTask:
  """Return a function that makes a task by name; further keywords are fields of its Config."""

  def make(name: str, num_envs: int = 8, *, seed: int = 0, offset: int = 0, training: bool = False, **fields):
    module = tasks.load(name)
    config, random = module.Config(**SMALL.get(name, {}) | fields), Random(seed, num_envs, offset, device)
    model = module.Task.make_model(config)
    simulation = physics.Simulation(model, num_envs, device, threads=1, outputs=module.Task.outputs)
    return module.Task(config, num_envs, device, random=random, training=training, simulation=simulation)

  return make


@pytest.fixture
def actions() -> Callable[[base.Task, int], torch.Tensor]:
  """Return a function that draws actions [steps, num_envs, num_actions] in [-1, 1], the same at each call."""

  def draw(task: base.Task, steps: int) -> torch.Tensor:
    generator = torch.Generator().manual_seed(1)
    draws = torch.rand(steps, task.num_envs, task.num_actions, generator=generator, device="cpu")
    return (2 * draws - 1).to(task.device)

  return draw
