"""The step of a batch of environments: order, ends and resets, divergence, and the mistakes of an author."""

import dataclasses

import pytest
import torch

from tasks import base
from tests.tasks.sliding import ROBOT, Config, Sliding, sliding


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
  task.sim.step = lambda *_: task.sim.overflow.copy_(torch.tensor([0, 2, 0, 1]))
  task.step(torch.zeros(4, 2))
  task.step(torch.zeros(4, 2))
  assert task.counters()["overflow"].item() == 6


def test_an_actuator_with_several_controls_needs_a_range_for_each():
  class Servo(Sliding):
    robot = ROBOT.replace("<actuator>", '<actuator><pid name="servo" joint="y" posrange="-1 1"/>')

  with pytest.raises(ValueError, match="servo"):
    sliding(kind=Servo).step(torch.zeros(4, 4))


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


def test_candidates_may_be_views_of_what_the_reset_changes():
  class Remembering(Sliding):
    def setup(self):
      super().setup()
      self.end, self.before_last = self.buffer(), self.buffer()

    def initial_state(self):
      return {
        "before_last": self.end,
        "end": self.sim.qpos[:, self.x],
        "qpos": super().initial_state()["qpos"],
      }

  task = sliding(kind=Remembering)
  ends = []
  for _ in range(10):
    x = task.step(torch.ones(4, 2))["metrics", "x"]
    ends += [x.tolist()] if task.episode_steps[0] == 0 else []
  assert [task.before_last.tolist(), task.end.tolist()] == ends


class Levelled(Sliding):
  """Each end of an episode raises a level that lasts."""

  def setup(self):
    super().setup()
    self.level = self.buffer(lasting=True)
    self.mark = self.buffer(lasting=True)

  def initial_state(self):
    return super().initial_state() | {"level": self.level + 1.0}


def test_a_lasting_buffer_survives_resets_and_learns_from_initial_state():
  task = sliding(kind=Levelled)
  assert task.level.tolist() == [1.0] * 4
  task.mark.fill_(7.0)
  task.sim.qpos[2, task.y] = 1.5
  task.step(torch.zeros(4, 2))
  assert task.level.tolist() == [1.0, 1.0, 2.0, 1.0]
  assert task.mark.tolist() == [7.0] * 4


def test_a_lasting_buffer_that_is_held_learns_nothing():
  task = sliding(kind=Levelled)
  task.level.fill_(5.0)
  task.levels_held = True
  task.reset()
  task.sim.qpos[2, task.y] = 1.5
  assert task.step(torch.zeros(4, 2))["terminated"].tolist() == [False, False, True, False]
  assert task.level.tolist() == [5.0] * 4


def test_a_lasting_buffer_learns_nothing_from_an_environment_that_diverged():
  task = sliding(kind=Levelled)
  task.sim.qvel[1, task.qvel_of("x")] = torch.nan
  task.step(torch.zeros(4, 2))
  assert task.level.tolist() == [1.0] * 4


def test_a_field_that_setup_varies_stays_so_through_resets_and_in_checkpoints():
  class Falling(Sliding):
    vary = ("gravity",)

    def setup(self):
      super().setup()
      self.sim.gravity[:, 2] = self.random.uniform("gravity", (), -11.0, -9.0)

  task, other = (sliding(kind=Falling) for _ in range(2))
  drawn = task.sim.gravity.clone()
  assert len(drawn[:, 2].unique()) == 4
  task.step(torch.tensor([0.0, -1.0]).expand(4, 2))
  torch.testing.assert_close(task.sim.qvel[:, task.qvel_of("z")], task.dt * drawn[:, 2:])
  for _ in range(6):
    task.step(torch.zeros(4, 2))
  assert task.sim.gravity.equal(drawn)
  other.sim.gravity.zero_()
  other.load_state_dict(task.state_dict())
  assert other.sim.gravity.equal(drawn)


def test_a_task_says_for_how_many_moving_contacts_there_is_room(monkeypatch):
  class Crowded(Sliding):
    moving_capacity = 7

  made, real = [], base.physics.Simulation
  monkeypatch.setattr(base.physics, "Simulation", lambda *words: made.append(words) or real(*words))
  sliding(kind=Crowded)
  assert made[0][-1] == 7


class Choosing(Sliding):
  choices = (3, 2)


def test_choices_are_spread_over_the_control_ranges():
  task = sliding(3, kind=Choosing)
  task.step(torch.tensor([[0, 0], [1, 1], [2, 0]]))
  assert task.action.dtype == torch.int64
  assert task.sim.ctrl.tolist() == [[-2.0, 0.0], [1.0, 1.0], [4.0, 0.0]]


def test_choices_have_no_mirror():
  class Mirrored(Choosing):
    def symmetry(self):
      return {"x": [-1], "travelled": [1], "action": [1, 1]}

  with pytest.raises(ValueError, match="choices"):
    sliding(kind=Mirrored)


def test_a_task_without_symmetry_has_no_mirror_and_one_without_aim_no_success():
  task = sliding()
  assert task.mirror is None
  assert "success" not in task.step(torch.zeros(4, 2))


def test_success_is_told_of_ended_episodes_as_they_ended():
  class Aiming(Sliding):
    def setup(self):
      super().setup()
      self.arrived = self.buffer(dtype=torch.bool)

    def update(self):
      super().update()
      self.arrived.copy_(self.sim.qpos[:, self.x] > 10.0)

    def success(self):
      return self.arrived

  task = sliding(kind=Aiming)
  task.sim.qpos[:2, task.y] = 1.5
  task.sim.qpos[1, task.x] = 0.0
  assert task.step(torch.ones(4, 2))["success"].tolist() == [True, False, False, False]
