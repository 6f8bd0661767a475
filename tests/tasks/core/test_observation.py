"""Noise, past observations and mirrors of named blocks, by hand."""

import dataclasses

import pytest
import torch

from gpurobot.learn.random import Random
from tasks.core.observation import Observations

NOWHERE, EVERYWHERE = torch.zeros(2, dtype=torch.bool), torch.ones(2, dtype=torch.bool)


@dataclasses.dataclass
class Config:
  noise_speed: float = 0.5
  history_policy: int = 3


def blocks(number):
  """Return blocks of two environments, all of whose numbers are `number`, or 10 more in the second."""
  value = torch.tensor([0.0, 10.0]) + number
  return {
    "policy": {"angle": value, "speed": value.view(2, 1, 1).expand(2, 2, 1)},
    "critic": {"angle": value, "fallen": value > 5},
  }


def past(groups, env=0):
  """Return the angles of the observations that the policy sees side by side."""
  return groups["policy"][env].view(-1, 3)[:, 0].tolist()


def test_groups_have_the_width_of_all_that_lies_side_by_side():
  observations = Observations(blocks(0.0), Config(), noisy=False)
  assert observations.dims == {"policy": 9, "critic": 2}
  groups = observations.restart(blocks(1.0), EVERYWHERE)
  assert {group: tuple(obs.shape) for group, obs in groups.items()} == {"policy": (2, 9), "critic": (2, 2)}
  assert groups["critic"].tolist() == [[1.0, 0.0], [11.0, 1.0]]
  assert groups["critic"].dtype == torch.float32


def test_the_oldest_observation_comes_first_and_an_episode_starts_with_its_own_first():
  observations = Observations(blocks(0.0), Config(), noisy=False)
  assert past(observations.restart(blocks(1.0), EVERYWHERE)) == [1.0, 1.0, 1.0]
  assert past(observations.push(blocks(2.0))) == [1.0, 1.0, 2.0]
  assert past(observations.restart(blocks(2.0), NOWHERE)) == [1.0, 1.0, 2.0]
  assert past(observations.push(blocks(3.0))) == [1.0, 2.0, 3.0]
  first_ended = torch.tensor([True, False])
  groups = observations.restart(blocks(7.0), first_ended)
  assert past(groups) == [7.0, 7.0, 7.0]
  assert past(groups, env=1) == [11.0, 12.0, 13.0]
  assert past(observations.push(blocks(8.0))) == [7.0, 7.0, 8.0]


def test_what_was_shown_does_not_change_with_what_comes():
  observations = Observations(blocks(0.0), Config(), noisy=False)
  shown = observations.restart(blocks(1.0), EVERYWHERE), observations.push(blocks(2.0))
  copies = [groups["policy"].clone() for groups in shown]
  observations.push(blocks(3.0))
  assert all(groups["policy"].equal(copy) for groups, copy in zip(shown, copies, strict=True))


def test_noise_is_uniform_on_its_block_for_the_policy_alone():
  many = Random(0, 4096)
  silent = {
    "policy": {"angle": torch.zeros(4096), "speed": torch.zeros(4096, 2)},
    "critic": {"speed": torch.zeros(4096)},
  }
  observations = Observations(silent, Config(history_policy=1), noisy=True)
  observations.draw(many.uniform)
  groups = observations.push(silent)
  angle, *speeds = groups["policy"].unbind(1)
  assert groups["critic"].abs().max() == angle.abs().max() == 0.0
  for speed in speeds:
    assert speed.abs().max() <= 0.5
    assert speed.mean().abs() < 5 * 0.5 / (3 * 4096) ** 0.5
    torch.testing.assert_close(speed.square().mean(), torch.tensor(0.25 / 3), rtol=0.1, atol=0)
  assert torch.corrcoef(torch.stack(speeds))[0, 1].abs() < 0.1


def test_noise_is_drawn_once_a_step_and_kept_in_the_past():
  random = Random(0, 2)
  observations = Observations(blocks(0.0), Config(), noisy=True)
  frames = []
  for _ in range(3):
    random.advance()
    observations.draw(random.uniform)
    final = observations.push(blocks(1.0))["policy"].view(2, 3, 3)
    frames.append(final[:, -1])
    assert observations.restart(blocks(1.0), NOWHERE)["policy"].view(2, 3, 3).equal(final)
  assert final.equal(torch.stack(frames, dim=1))
  assert not frames[0].equal(frames[1])


@pytest.mark.parametrize(
  ("field", "message"),
  [
    ("noise_sped", "noise_sped: .*nearest: 'speed'"),
    ("noise_fallen", "noise_fallen: "),  # the critic's alone
    ("history_police", "history_police: .*nearest: 'policy'"),
  ],
)
def test_a_setting_of_nothing_is_refused(field, message):
  config = dataclasses.make_dataclass("Config", [(field, int, 2)])()
  with pytest.raises(ValueError, match=message):
    Observations(blocks(0.0), config, noisy=True)


SYMMETRY = {"angle": [-1], "speed": ([1, 0], [1, 1]), "action": ([1, 0, 2], [-1, -1, 1])}


def test_a_mirror_reflects_each_observation_of_the_past_and_the_action():
  observations = Observations(blocks(0.0), Config(history_policy=2), noisy=False)
  mirror = observations.mirror(SYMMETRY, 3)
  index, sign = mirror["policy"]
  x = torch.tensor([1.0, 2.0, 3.0, 4.0, 5.0, 6.0])
  assert (sign * x[..., index]).tolist() == [-1.0, 3.0, 2.0, -4.0, 6.0, 5.0]
  index, sign = mirror["action"]
  assert (sign * x[:3][index]).tolist() == [-2.0, -1.0, 3.0]
  assert (index.dtype, sign.dtype) == (torch.int64, torch.float32)


@pytest.mark.parametrize(
  ("change", "message"),
  [
    ({"angle": [1, 1]}, "'angle': 2 numbers, the block has 1"),
    ({"speed": ([1, 1], [1, 1])}, "'speed': mirrored twice"),
    ({"speed": ([1, 0], [1, -1])}, "'speed': mirrored twice"),
    ({"speed": ([2, 0], [1, 1])}, "'speed': mirrored twice"),
    ({"angle": [2]}, "'angle': mirrored twice"),
    ({"sped": [1]}, "'sped': there is no such block, nearest: 'speed'"),
  ],
)
def test_a_mirror_that_is_none_is_refused(change, message):
  with pytest.raises(ValueError, match=message):
    Observations(blocks(0.0), Config(), noisy=False).mirror(SYMMETRY | change, 3)


def test_a_mirror_lacks_no_block():
  without = {name: reflection for name, reflection in SYMMETRY.items() if name != "speed"}
  with pytest.raises(ValueError, match=r"'speed': symmetry\(\) lacks it"):
    Observations(blocks(0.0), Config(), noisy=False).mirror(without, 3)


@dataclasses.dataclass
class Late:
  delay_policy: int = 2
  history_policy: int = 2


def late(ages):
  """Return observations whose ages are drawn to be these, and a function that draws them."""
  observations = Observations(blocks(0.0), Late(), noisy=True)

  def uniform(purpose, shape, low, high):
    assert (purpose, shape, low, high) == ("delay of policy", (), 0.0, 3.0)
    return torch.tensor(ages) + 0.5

  return observations, uniform


def test_a_delayed_observation_has_the_age_of_its_episode_and_lies_beside_delayed_ones():
  observations, uniform = late([2, 0])
  observations.draw(uniform)
  assert past(observations.restart(blocks(1.0), EVERYWHERE)) == [1.0, 1.0]
  shown = [observations.push(blocks(number)) for number in (2.0, 3.0, 4.0)]
  assert [past(groups) for groups in shown] == [[1.0, 1.0], [1.0, 1.0], [1.0, 2.0]]
  assert [past(groups, env=1) for groups in shown] == [[11.0, 12.0], [12.0, 13.0], [13.0, 14.0]]
  assert [groups["critic"][0, 0].item() for groups in shown] == [2.0, 3.0, 4.0]


def test_an_age_is_drawn_anew_only_where_an_episode_starts():
  observations, uniform = late([2, 2])
  observations.draw(uniform)
  observations.restart(blocks(1.0), EVERYWHERE)
  observations.draw(lambda *_: torch.tensor([1.5, 0.5]))
  observations.restart(blocks(7.0), torch.tensor([True, False]))
  groups = observations.push(blocks(8.0))
  assert past(groups) == [7.0, 7.0]
  assert past(groups, env=1) == [11.0, 11.0]
  assert past(observations.push(blocks(9.0))) == [7.0, 8.0]


def test_in_evaluation_nothing_is_late():
  observations = Observations(blocks(0.0), Late(), noisy=False)
  observations.restart(blocks(1.0), EVERYWHERE)
  assert past(observations.push(blocks(2.0))) == [1.0, 2.0]
