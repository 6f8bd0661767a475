"""Every task of the folder is dm_control's environment of its name."""

import functools

import numpy as np
import pytest
import torch

import tasks
from benchmarks.parity import dm_tasks
from physics.host import evaluate
from tasks.core.errors import TaskError
from tasks.dm import MISSING, TASKS
from tests.instances import grouped
from tests.tasks.conftest import OF_DM
from tests.tasks.test_all import step_unreal

dm_tasks.drop_missing_arrays()

from dm_control import suite  # noqa: E402

ROUNDING = 1e-6  # observations and rewards are float32
# In the first observation of an episode, dm_control measures forces with actuators switched off.
FORCES = {"quadruped": {"imu", "force_torque"}, "dog": {"inertial_sensors", "foot_forces", "touch_sensors"}}

each_task = pytest.mark.parametrize("name", dm_tasks.NAMES)
each_module = pytest.mark.parametrize("module", TASKS)


# What the target is moved to for a reward: fields and elements of the model.
EFFECTORS = {
  "fish": ("geom_xpos", "geom", "mouth"),
  "finger": ("site_xpos", "site", "tip"),
  "manipulator_bring_ball": ("xpos", "body", "ball"),
  "manipulator_bring_peg": ("xpos", "body", "peg"),
  "manipulator_insert_ball": ("xpos", "body", "ball"),
  "manipulator_insert_peg": ("xpos", "body", "peg"),
  "reacher": ("geom_xpos", "geom", "finger"),
  "stacker": ("xpos", "body", "box0"),
  "swimmer": ("geom_xpos", "geom", "nose"),
}


# What has to be fast for a reward: a column of qvel, and a speed.
FAST = {
  "cheetah": (0, 11.0),
  "finger": (2, -20.0),
  "hopper": (0, 3.0),
  "humanoid": (0, 11.0),
  "quadruped": (0, 6.0),
  "dog": (0, 10.0),
  "walker": (1, 9.0),
}


@functools.cache
def make(name):
  return dm_tasks.make_task(name, 5, in_mujoco=True, starts=16), dm_tasks.Suite(name)


def domain_of(name):
  return next(domain for domain, parts in TASKS.items() for part in parts if name == f"dm/{domain}_{part}")


def succeed(name, task):
  """Write states near those that earn the full reward, fast ones too."""
  sim, model, random = task.sim, task.model, np.random.default_rng(0)
  qpos = model.qpos0 + 0.01 * random.uniform(-1, 1, (task.num_envs, model.nq))
  if "ball_in_cup" in name:
    qpos[:, 3] += 0.36
  sim.qpos[:] = torch.from_numpy(qpos)
  sim.qvel[:] = 0.1 * torch.from_numpy(random.uniform(-1, 1, (task.num_envs, model.nv)))
  for key, (column, fastest) in FAST.items():
    if key in name:
      sim.qvel[:, column] = torch.linspace(0.0, fastest, task.num_envs)
  for key, (field, kind, effector) in EFFECTORS.items():
    if key in name:
      places = evaluate(model, {"qpos": qpos}, [field])[field][:, getattr(model, f"{kind}_id")(effector)]
      sim.mocap_pos[:] = torch.from_numpy(places)[:, None]
      sim.mocap_quat[:] = torch.tensor([1.0, 0.0, 0.0, 0.0])


def test_all_tasks_of_the_suite_are_here_or_said_to_be_missing():
  names = {f"{module}_{task}" for module, parts in TASKS.items() for task in parts}
  assert names | {*MISSING} == {f"{domain}_{task}" for domain, task in suite.ALL_TASKS}
  assert not names & {*MISSING}


def test_a_missing_task_says_why_it_is():
  with pytest.raises(TaskError, match="no task 'dm/quadruped_escape': each of its episodes has a new terr"):
    tasks.load("dm/quadruped_escape")


@each_task
def test_sizes_names_and_times_are_dm_control_s(name):
  task, reference = make(name)
  shapes = {key: int(np.prod(spec.shape)) for key, spec in reference.env.observation_spec().items()}
  assert task.observations.widths["policy"] == shapes
  assert [*task.observations.widths["policy"]] == [*shapes]
  assert task.num_actions == reference.env.action_spec().shape[0]
  assert task.dt == pytest.approx(reference.env.control_timestep())
  assert reference.step_limit in {task.max_episode_steps, np.inf}


@each_task
def test_states_of_random_play_lead_where_they_lead_in_dm_control(name):
  task, reference = make(name)
  assert dm_tasks.errors(*dm_tasks.collect(task, reference, rounds=2)).max() < ROUNDING


@each_task
def test_states_near_success_earn_what_they_earn_in_dm_control(name):
  task, reference = make(name)
  task.reset()
  succeed(name, task)
  found, expected = dm_tasks.compare(task, reference, torch.zeros(task.num_envs, task.num_actions))
  assert expected["reward"].max() > (0.0 if "CMU" in name else 0.1)
  assert dm_tasks.errors(found, expected).max() < ROUNDING


@pytest.mark.parametrize("name", grouped(OF_DM))
def test_the_engine_takes_the_steps_of_dm_control(name):
  """Forces are small differences of large numbers, and have fewer digits."""
  task = dm_tasks.make_task(name, 8, starts=64)
  found, expected = dm_tasks.collect(task, make(name)[1], rounds=2)
  for block in expected:
    error = dm_tasks.errors({block: found[block]}, {block: expected[block]})
    bound = 1e-3 if block in FORCES.get(domain_of(name), set()) else 1e-4
    assert np.median(error) < bound / 10
    assert error.max() < bound


@each_task
def test_first_observations_are_dm_control_s(name):
  task, reference = make(name)
  task.reset()
  for index in range(task.num_envs):
    reference.set_state(task, index)
    expected = dm_tasks.split(task, np.append(reference.start(), 0.0)[None])
    for block, values in task.observe()["policy"].items():
      if block not in FORCES.get(domain_of(name), set()):
        np.testing.assert_allclose(values[index].flatten(), expected[block][0], rtol=ROUNDING, atol=ROUNDING)


@each_module
def test_episodes_start_as_in_dm_control(module):
  """Every coordinate has dm_control's distribution: mean and spread."""
  name = f"dm/{module}_{[*TASKS[module]][-1]}"
  task, reference = dm_tasks.make_task(name, 100, in_mujoco=True, starts=400), make(name)[1]
  ours, theirs = [], []
  for _ in range(10):
    task.reset()
    ours.append(np.concatenate([getattr(task.sim, part) for part in ("qpos", "qvel", "act")], axis=1))
  for _ in range(400):
    reference.env.reset()
    data = reference.env.physics.data
    theirs.append(np.concatenate([data.qpos, data.qvel, data.act]))
  ours, theirs = np.concatenate(ours), np.stack(theirs)
  spread = theirs.std(0)
  np.testing.assert_allclose(ours.std(0), spread, rtol=0.25, atol=1e-6)
  assert (np.abs(ours.mean(0) - theirs.mean(0)) <= 0.3 * spread + 1e-6).all()


@each_module
def test_steps_need_no_numbers(module):
  task, _ = make(f"dm/{module}_{[*TASKS[module]][-1]}")
  step = step_unreal(type(task), task)
  assert step["obs", "policy"].shape == (8, task.obs_dims["policy"])
