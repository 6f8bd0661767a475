"""The step of a batch of environments: order, ends and resets, divergence, and the mistakes of an author."""

import dataclasses

import pytest
import torch

from gpurobot.random import Random
from tasks import base

ROBOT = """
<mujoco>
  <option timestep="0.01" integrator="Euler" gravity="0 0 0"/>
  <worldbody>
    <body name="ball">
      <joint name="ball" type="ball"/>
      <geom type="sphere" size="0.1" mass="1"/>
    </body>
    <body name="block">
      <joint name="x" type="slide" axis="1 0 0"/>
      <joint name="y" type="slide" axis="0 1 0"/>
      <joint name="z" type="slide" axis="0 0 1"/>
      <geom type="sphere" size="0.1" mass="1" contype="0" conaffinity="0"/>
    </body>
  </worldbody>
  <actuator>
    <motor name="push" joint="x" ctrllimited="true" ctrlrange="-2 4"/>
    <motor name="lift" joint="z" ctrllimited="true" ctrlrange="0 1"/>
  </actuator>
</mujoco>
"""


@dataclasses.dataclass
class Config(base.Config):
  episode_steps: int = 5
  substeps: int = 2
  reward_speed: float = 2.0
  reward_effort: float = -0.5


class Sliding(base.Task):
  """A block on three slides; it starts at x = 10 and ends where its y exceeds 1."""

  robot = ROBOT

  def setup(self):
    self.x, self.y = self.qpos_of("x").start, self.qpos_of("y").start
    self.travelled = self.buffer()
    self.best = self.buffer(2)
    self.calls = []

  def initial_state(self):
    self.calls.append("initial_state")
    self.final_x = self.sim.qpos[:, self.x].clone()
    qpos = self.constant(self.model.qpos0).repeat(self.num_envs, 1)
    qpos[:, self.x] = 10.0
    return {"qpos": qpos, "best": torch.ones(self.num_envs, 2)}

  def control(self):
    self.calls.append("control")
    super().control()

  def update(self):
    self.calls.append("update")
    self.travelled += 1.0

  def reward(self):
    self.calls.append("reward")
    return {"speed": self.sim.qvel[:, self.qvel_of("x").start], "effort": self.action.square().sum(1)}

  def terminated(self):
    self.calls.append("terminated")
    return self.sim.qpos[:, self.y] > 1.0

  def observe(self):
    self.calls.append("observe")
    x = self.sim.qpos[:, self.x]
    return {"policy": {"x": x, "travelled": self.travelled}, "critic": {"best": self.best, "x": x}}

  def metrics(self):
    return {"x": self.sim.qpos[:, self.x]}


def sliding(num_envs=4, *, training=False, kind=Sliding, config=None):
  task = kind(config or Config(), num_envs, random=Random(0, num_envs), training=training)
  task.reset()
  task.calls.clear()
  return task


def test_the_order_of_a_step():
  task = sliding()
  task.step(torch.zeros(4, 2))
  assert task.calls == [
    "control",
    "update",
    "reward",
    "terminated",
    "observe",
    "initial_state",
    "observe",
  ]


def test_actions_are_clipped_and_mapped_onto_control_ranges():
  task = sliding(3)
  task.step(torch.tensor([[-9.0, -1.0], [0.0, 0.0], [2.0, 1.0]]))
  assert task.action.tolist() == [[-1.0, -1.0], [0.0, 0.0], [1.0, 1.0]]
  assert task.sim.ctrl.tolist() == [[-2.0, 0.0], [1.0, 0.5], [4.0, 1.0]]


def test_rewards_are_weighted_summed_and_logged():
  task = sliding()
  step = task.step(torch.ones(4, 2))
  speed = task.sim.qvel[:, task.qvel_of("x").start]
  assert (speed > 0).all()
  torch.testing.assert_close(step["reward_terms", "speed"], 2.0 * speed)
  torch.testing.assert_close(step["reward_terms", "effort"], torch.full((4,), -1.0))
  torch.testing.assert_close(step["reward"], 2.0 * speed - 1.0)
  torch.testing.assert_close(step["metrics", "x"], task.sim.qpos[:, task.x])


def test_observation_groups_are_their_blocks_side_by_side():
  task = sliding()
  assert task.obs_dims == {"policy": 2, "critic": 3}
  obs = task.step(torch.zeros(4, 2))["obs"]
  torch.testing.assert_close(obs["policy"][:, 0], task.sim.qpos[:, task.x])
  assert obs["policy"][:, 1].tolist() == [1.0] * 4
  assert obs["critic"][:, :2].tolist() == [[1.0, 1.0]] * 4


def test_only_ended_episodes_start_anew_and_final_obs_is_what_they_ended_with():
  task = sliding()
  task.step(torch.ones(4, 2))
  task.sim.qpos[2, task.y] = 1.5
  step = task.step(torch.ones(4, 2))
  ended = torch.tensor([False, False, True, False])
  assert step["terminated"].equal(ended)
  assert not step["truncated"].any()
  assert step["metrics", "x"].equal(step["final_obs", "policy"][:, 0])
  assert task.episode_steps.tolist() == [2, 2, 0, 2]
  final, obs = step["final_obs", "policy"], step["obs", "policy"]
  assert final[~ended].equal(obs[~ended])
  assert final[:, 1].tolist() == [2.0] * 4
  torch.testing.assert_close(final[2], final[1])  # the same motion, but for y
  assert obs[2].tolist() == [10.0, 0.0]
  assert task.best[2].tolist() == [1.0, 1.0]
  assert task.sim.qvel[2].abs().max() == 0.0
  assert (task.final_x > 10.0).all()  # initial_state saw the state before the reset


def test_the_time_limit_truncates_unless_the_episode_ended_by_itself():
  task = sliding()
  for _ in range(4):
    assert not task.step(torch.zeros(4, 2))["truncated"].any()
  task.sim.qpos[1, task.y] = 1.5
  step = task.step(torch.zeros(4, 2))
  assert step["truncated"].tolist() == [True, False, True, True]
  assert step["terminated"].tolist() == [False, True, False, False]
  assert task.episode_steps.tolist() == [0] * 4


def test_derived_quantities_are_fresh_after_a_reset():
  task = sliding()
  for _ in range(5):
    task.step(torch.ones(4, 2))
  x = task.sim.xpos[:, task.body_of("block")].reshape(4, 3)[:, 0]
  assert x.tolist() == [10.0] * 4


def test_the_first_episodes_start_at_random_phases_in_training_alone():
  assert sliding(64).episode_steps.unique().tolist() == [0]
  task = sliding(64, training=True)
  assert task.episode_steps.unique().tolist() == [0, 1, 2, 3, 4]
  truncated = torch.stack([task.step(torch.zeros(64, 2))["truncated"] for _ in range(5)])
  assert truncated.sum(0).tolist() == [1] * 64


@pytest.mark.parametrize("number", [torch.nan, torch.inf, 1e9])
def test_a_diverged_environment_is_invalid_reset_and_counted_and_alone(number):
  task, twin = sliding(), sliding()
  task.sim.qvel[1, task.qvel_of("x")] = number
  step, expected = task.step(torch.ones(4, 2)), twin.step(torch.ones(4, 2))
  assert step["valid"].tolist() == [True, False, True, True]
  assert not (step["terminated"] | step["truncated"]).any()
  assert [step[key][1] for key in ("reward", ("reward_terms", "speed"), ("metrics", "x"))] == [0.0] * 3
  assert step["obs", "policy"][1].tolist() == [10.0, 0.0]
  assert step["final_obs", "policy"][1].tolist() == [10.0, 0.0]
  others = torch.tensor([0, 2, 3])
  for key in (("obs", "policy"), ("final_obs", "critic"), "reward"):
    assert step[key][others].equal(expected[key][others])
  assert task.counters()["nonfinite"].item() == 1
  assert task.step(torch.ones(4, 2))["valid"].all()
  assert task.counters()["nonfinite"].item() == 1


def test_a_non_finite_action_diverges_once_and_is_forgotten():
  task = sliding()
  action = torch.zeros(4, 2)
  action[0, 0] = torch.nan
  assert task.step(action)["valid"].tolist() == [False, True, True, True]
  step = task.step(torch.zeros(4, 2))
  assert step["valid"].all()
  assert step["obs", "policy"].isfinite().all()


def test_dropped_contacts_are_counted():
  task = sliding()
  task.sim.step = lambda _: task.sim.overflow.copy_(torch.tensor([0, 2, 0, 1]))
  task.step(torch.zeros(4, 2))
  task.step(torch.zeros(4, 2))
  assert task.counters()["overflow"].item() == 6


def test_names_are_found_and_neighbours_are_views():
  task = sliding()
  assert task.qpos_of("ball", "x") == slice(0, 5, 1)
  assert task.qvel_of("ball") == slice(0, 3, 1)
  assert task.qvel_of("x", "z") == slice(3, 6, 2)
  assert task.qpos_of("z", "x").tolist() == [6, 4]
  assert task.body_of("block") == slice(2, 3, 1)
  assert task.ctrl_of("push", "lift") == slice(0, 2, 1)
  with pytest.raises(KeyError, match="ball"):
    task.qpos_of("bal")


def test_an_actuator_may_have_several_controls():
  class Servo(Sliding):
    robot = ROBOT.replace("<actuator>", '<actuator><pid name="servo" joint="y" posrange="-1 1"/>')

  task = sliding(kind=Servo)
  assert [task.ctrl_of(name) for name in ("servo", "lift")] == [slice(0, 2, 1), slice(3, 4, 1)]
  with pytest.raises(ValueError, match="servo"):
    task.step(torch.zeros(4, 4))


def test_a_reward_and_its_weight_need_each_other():
  @dataclasses.dataclass
  class Misspelt(Config):
    reward_sped: float = 1.0

  with pytest.raises(ValueError, match=r"reward_sped.*nearest: 'reward_speed'"):
    sliding(config=Misspelt())

  class Unweighted(Sliding):
    def reward(self):
      return super().reward() | {"spee": self.action[:, 0]}

  with pytest.raises(ValueError, match=r"reward_spee:.*nearest: 'reward_speed'"):
    sliding(kind=Unweighted)


def test_an_unknown_name_in_the_initial_state_is_refused():
  class Misspelt(Sliding):
    def initial_state(self):
      return {"qposs": self.sim.qpos}

  with pytest.raises(ValueError, match=r"qposs.*nearest: 'qpos'"):
    sliding(kind=Misspelt)


def test_a_rebound_buffer_is_refused():
  class Rebinding(Sliding):
    def update(self):
      self.travelled = self.travelled + 1.0

  with pytest.raises(RuntimeError, match="travelled"):
    sliding(kind=Rebinding).step(torch.zeros(4, 2))


def test_an_actuator_without_a_range_needs_a_control_of_its_own():
  class Unlimited(Sliding):
    robot = ROBOT.replace('ctrllimited="true" ctrlrange="0 1"', "")

  with pytest.raises(ValueError, match="lift"):
    sliding(kind=Unlimited).step(torch.zeros(4, 2))
