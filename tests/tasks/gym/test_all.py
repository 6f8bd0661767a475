"""Every task of the folder is Gymnasium's environment of its name."""

import functools

import gymnasium
import numpy as np
import pytest
import torch

from benchmarks.parity import gym_tasks
from benchmarks.parity.gym_tasks import ALLOWED, NAMES, NUM_ENVS, ROUNDS
from physics.parity.compare import SINGLE
from tests.instances import grouped

HARDEST = 80  # states in which rounding may excuse an error, as physics.parity measures it
TOUCHING = {"Ant", "HalfCheetah", "Hopper", "Humanoid", "HumanoidStandup", "Pusher", "Walker2d"}
# Where Gymnasium tells of any state whether it ends an episode: how far positions and speeds are drawn.
ENDING = {"Ant": (1.0, 1.0), "Hopper": (0.5, 120.0), "Humanoid": (1.0, 1.0), "Walker2d": (1.5, 1.0)}

each_task = pytest.mark.parametrize("name", grouped(NAMES))
pytestmark = pytest.mark.filterwarnings("ignore:the file asks for the PGS solver")


@functools.cache
def make(name):
  return gym_tasks.make_task(name), gym_tasks.make_env(name)


def short(name):
  return name.removeprefix("gym/").removesuffix("-v5")


@each_task
def test_sizes_and_times_are_gymnasium_s(name):
  task, env = make(name)
  assert task.obs_dims == {"policy": env.observation_space.shape[0]}
  assert task.num_actions == env.action_space.shape[0]
  assert task.dt == pytest.approx(env.dt)
  assert task.max_episode_steps == gymnasium.spec(name.removeprefix("gym/")).max_episode_steps


@each_task
def test_a_thousand_states_lead_where_they_lead_in_gymnasium(name, monkeypatch):
  task, env = make(name)
  states, found = gym_tasks.collect(task)
  assert (task.sim.contact_count.sum() > 0) == (short(name) in TOUCHING)
  assert len(states) == NUM_ENVS * ROUNDS == 1000
  expected = gym_tasks.step_gymnasium(task, env, gym_tasks.newton(env.model), states)
  assert (found.terminated == expected.terminated).all()
  error = gym_tasks.errors(found.blocks, expected.blocks)
  assert np.median(error) < 2e-5
  (hard,) = np.nonzero(error > ALLOWED)
  assert len(hard) <= HARDEST
  for draws in (2, gym_tasks.DRAWS):  # two draws excuse most
    monkeypatch.setattr(gym_tasks, "DRAWS", draws)
    if len(hard):
      hard = hard[error[hard] >= SINGLE.rounding * gym_tasks.rounding(task, env, states[hard])]
  assert not len(hard)


@each_task
def test_episodes_start_as_in_gymnasium(name):
  """Every coordinate has Gymnasium's distribution: mean, spread, and both ends where it is uniform."""
  task, env = make(name)
  ours, theirs = [], []
  for _ in range(40):
    task.random.advance()
    start = task.initial_state()
    ours.append(torch.cat([start["qpos"], start["qvel"]], dim=1).double().numpy())
  for _ in range(2000):
    env.reset()
    theirs.append(np.concatenate([env.data.qpos, env.data.qvel]))
  ours, theirs = np.concatenate(ours), np.stack(theirs)
  spread = theirs.std(0)
  np.testing.assert_allclose(ours.std(0), spread, rtol=0.08, atol=1e-9)
  assert (np.abs(ours.mean(0) - theirs.mean(0)) <= 0.12 * spread + 1e-7).all()
  uniform = np.abs(theirs - theirs.mean(0)).max(0) < 2.5 * spread
  for end in (np.min, np.max):
    assert (np.abs(end(ours, 0) - end(theirs, 0)) <= 0.05 * spread + 1e-7)[uniform].all()


@pytest.mark.parametrize("short", ENDING)
def test_an_episode_ends_where_gymnasium_s_robot_is_unhealthy(short):
  task, env = make(f"gym/{short}-v5")
  random, (position, speed) = np.random.default_rng(0), ENDING[short]
  ended = []
  for _ in range(6):
    qpos = np.float32(env.init_qpos + random.uniform(-position, position, (NUM_ENVS, task.model.nq)))
    qvel = np.float32(speed * random.uniform(-1, 1, (NUM_ENVS, task.model.nv)) ** 3)
    task.sim.qpos[:], task.sim.qvel[:] = torch.from_numpy(qpos), torch.from_numpy(qvel)
    for state, one in zip(zip(qpos, qvel, strict=True), task.terminated(), strict=True):
      env.data.qpos[:], env.data.qvel[:] = state
      assert one == (not env.is_healthy)
      ended.append(bool(one))
  assert 20 < sum(ended) < len(ended) - 20


@pytest.mark.parametrize(
  ("short", "limits", "ends"), [("Ant", (0.2, 1.0), False), ("Humanoid", (1, 2), True)]
)
def test_at_a_limit_an_ant_is_healthy_and_a_humanoid_is_not(short, limits, ends):
  task, _ = make(f"gym/{short}-v5")
  task.sim.qpos[:2, 2] = torch.tensor(limits)
  assert task.terminated()[:2].tolist() == [ends, ends]
