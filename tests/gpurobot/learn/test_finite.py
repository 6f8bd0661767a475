"""Training beside observations and rewards that are not finite: they are left out, counted and named."""

import math

import pytest
import torch

from gpurobot.device.distributed import World
from gpurobot.learn.finite import FiniteCheck, describe
from gpurobot.learn.ppo import PPO
from gpurobot.learn.random import Random
from gpurobot.run.log import Log
from gpurobot.settings.config import assign, defaults
from tests.gpurobot import toy, toy_pixels
from tests.gpurobot.learn.test_ppo import iterate

ENVS = 64


class Spoiled(toy.Task):
  """The toy, but environment 5 shows or gives what is no number in each of its steps 10 to 12, as valid."""

  spoil = ""
  steps = 0

  def step(self, action):
    result, self.steps = super().step(action), self.steps + 1
    if 10 <= self.steps <= 12:
      for part in self.spoil.split():
        entry = result["reward"] if part == "reward" else result[part, "critic"][:, 2]
        entry[5] = {"obs": math.inf}.get(part, math.nan)
    return result


def train(spoil: str, iterations: int, **settings) -> PPO:
  config = assign(defaults(toy), {"ppo.precision": "float64", "graphs": "off"} | settings)
  env = Spoiled(config.env, ENVS, random=Random(0, ENVS))
  env.spoil = spoil
  return iterate(PPO(env, config, World()), iterations)


class Blinded(toy_pixels.Task):
  """The toy seen through a camera, whose depth is nan at a pixel of environment 5 in its steps 10 to 12."""

  steps = 0

  def step(self, action):
    result, self.steps = super().step(action), self.steps + 1
    if 10 <= self.steps <= 12:
      result["obs", "depth"][5, 3, 4] = math.nan
    return result


def test_images_that_are_not_finite_are_left_out_counted_and_named():
  config = assign(defaults(toy_pixels), {"ppo.precision": "float64", "graphs": "off"})
  env = Blinded(config.env, ENVS, random=Random(0, ENVS))
  learner = PPO(env, config, World())
  for _ in range(3):
    learner.collect()
    assert learner.rollout.samples["obs", "depth"].isfinite().all()
    learner.update()
  values = learner.report()
  assert float(values["nonfinite_samples"]) == 3
  assert describe(int(values["nonfinite_source"]), env) == "the image 'depth' in environment 5"
  assert all(weight.isfinite().all() for weight in learner.network.parameters())


@pytest.mark.parametrize(("spoil", "settings"), [
  ("final_obs", {"ppo.recurrent": "gru"}), ("reward", {"ppo.critic": "twohot"}),
  ("obs final_obs reward", {}), ("obs", {"env.episode_steps": 3}),
])  # fmt: skip
def test_training_goes_on_and_only_those_samples_are_left_out(spoil, settings):
  learner = train(spoil, 4, **settings)
  assert int(learner.optimizer.skipped) == 0
  assert all(parameter.isfinite().all() for parameter in learner.network.parameters())
  moments = learner.observations.moments["critic"]
  assert all(part.isfinite().all() for part in (*moments.unit, *learner.value_moments.unit))
  report = {name: float(value) for name, value in learner.report().items()}
  # A spoiled observation is the input of the next step: steps 11 to 13 are left out, and steps 10 to 12 where
  # final_obs or reward are spoiled.
  count = int(report["nonfinite_samples"])
  assert count == (4 if spoil == "obs final_obs reward" else 3)
  assert int(moments.count) == 4 * 8 * ENVS - count
  assert all(math.isfinite(report[name]) for name in ("policy_loss", "value_loss", "kl", "value/mean"))


def test_what_is_not_finite_is_worth_nothing_to_the_other_environments():
  """The others collect the same samples, to the bit, as beside an environment that behaves."""
  spoiled, whole = train("obs", 0), train("", 0)
  for learner in (spoiled, whole):
    learner.collect()
    learner.collect()
  others = torch.arange(ENVS) != 5
  for name in ("reward", "value", "action", "valid"):
    assert torch.equal(spoiled.rollout.samples[name][:, others], whole.rollout.samples[name][:, others])


def test_a_resumed_run_leaves_the_same_sample_out():
  """The observation before the save was not finite: the step that starts from it does not count."""
  original, resumed = train("obs", 0), train("", 0)
  original.env.steps = 4  # spoiled are the last three steps of this rollout, 10 to 12, and none of the next
  original.collect()
  assert original.collector.finite.tolist() == [env != 5 for env in range(ENVS)]
  resumed.load_state_dict(original.state_dict())
  for learner in (original, resumed):
    learner.collect()
    learner.update()
  assert not resumed.rollout.samples["valid"][0, 5]
  pairs = zip(original.network.parameters(), resumed.network.parameters(), strict=True)
  assert all(torch.equal(a, b) for a, b in pairs)


def test_the_first_source_is_named(tmp_path, capsys):
  learner = train("obs", 0, log_every=1)
  with Log(assign(defaults(toy), {"log_every": 1}), learner, tmp_path) as log:
    for _ in range(3):
      iterate(learner, 1)
      log.step()
  (warning,) = [text for text in log.warnings if "left out" in text]
  assert warning.startswith(
    "3 sample(s) left out: an observation, column 2 of the group 'critic' in environment 5, was not finite"
  )


def test_a_task_names_its_block():
  env = toy.Task(toy.Config(), 4, random=Random(0, 4))
  check = FiniteCheck(env, first_env=100)
  obs = {"policy": torch.zeros(4, 2), "critic": torch.zeros(4, 3)}
  assert check.rows(obs).all()
  check.note(obs, check.rows(obs))
  assert int(check.source) == -1
  obs = {"critic": obs["critic"], "policy": obs["policy"]}  # another order than in `obs_dims`
  obs["critic"][2, 1] = math.nan
  assert check.rows(obs).tolist() == [True, True, False, True]
  check.note(obs, check.rows(obs))
  env.obs_names = {"policy": ["position"] * 2, "critic": ["position", "position", "distance"]}
  assert describe(int(check.source), env) == "block 'position' of the group 'critic' in environment 102"
