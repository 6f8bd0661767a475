"""Similar robots: settings that scale, settings that stay, settings of the user."""

import dataclasses

import pytest

from tasks import reach
from tasks.shared import gait
from tasks.shared.similarity import OF_OTHER, POWERS, Size, similar
from tasks.walk import DOG, TWO_LEGS, Config


def test_a_robot_of_the_same_size_has_the_same_settings():
  same, other = similar(Config(), {}, DOG, DOG), gait.Config()
  assert (same.command_forward, same.reward_effort) == (other.command_forward, other.reward_effort)
  assert None not in [getattr(same, name) for name in {*POWERS, *TWO_LEGS} & {*vars(same)}]


def test_lengths_times_and_torques_scale():
  giant = similar(Config(), {}, Size(4 * DOG.length, 10 * DOG.mass), DOG)
  default = similar(Config(), {}, DOG, DOG)
  assert giant.command_forward == pytest.approx(2 * default.command_forward)
  assert giant.command_turn == pytest.approx(default.command_turn / 2)
  assert giant.step_seconds == pytest.approx(2 * default.step_seconds)
  assert giant.swing_height == pytest.approx(4 * default.swing_height)
  assert giant.reward_effort == pytest.approx(default.reward_effort / 40**2)
  assert giant.reward_vertical == pytest.approx(default.reward_vertical / 4)
  assert giant.reward_rocking == pytest.approx(default.reward_rocking * 4)
  assert giant.reward_swing == pytest.approx(default.reward_swing / 16)
  assert giant.reward_velocity == default.reward_velocity


def test_events_and_changes_count_as_much_among_more_steps():
  """In half the time step an event is one of twice the steps, and a squared change is a quarter."""
  default, short = (similar(Config(), {}, dataclasses.replace(DOG, step=step), DOG) for step in (0.02, 0.01))
  for name, factor in (("fallen", 2), ("change", 4), ("velocity", 1), ("effort", 1)):
    before, now = (getattr(config, f"reward_{name}") for config in (default, short))
    assert now == pytest.approx(factor * before), name


def test_what_the_user_sets_stays():
  giant = similar(Config(command_forward=0.7), {"command_forward": 3.0}, Size(2.0, 100.0), DOG)
  assert giant.command_forward == 0.7


@pytest.mark.parametrize("name", [*POWERS, *TWO_LEGS])
def test_so_does_a_default_that_the_user_sets(name):
  kind = Config if name in vars(Config()) else reach.Config
  assert getattr(kind(), name) is None
  (field,) = (field for field in dataclasses.fields(kind) if field.name == name)
  default = field.metadata[OF_OTHER]
  giant = similar(kind(**{name: default}), {name: 3.0}, Size(2.0, 100.0), DOG)
  assert getattr(giant, name) == default


def test_settings_of_another_robot_replace_the_defaults():
  assert similar(Config(), {"start_angle": 0.3}, Size(2.0, 100.0), DOG).start_angle == 0.3
