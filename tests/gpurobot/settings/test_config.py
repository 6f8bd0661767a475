import dataclasses
import math
from types import SimpleNamespace

import pytest

from gpurobot.settings.algorithms import Activation, PPOConfig, Precision
from gpurobot.settings.config import (
  ConfigError,
  TrainConfig,
  assign,
  block,
  defaults,
  leaves,
  local_envs,
  option,
  pairs,
  to_dict,
  without_limits,
)
from tests.gpurobot import toy


def parse(*words: str) -> TrainConfig:
  config = defaults(toy)
  return assign(config, pairs(list(words), leaves(config)))


def test_texts_become_typed_values():
  config = parse(
    "num_envs=128", "max_steps=1e6", "max_seconds=3", "run_dir=2024", "ppo.precision=bf16",
    "ppo.layer_norm=true", "ppo.hidden=[8,4]", "ppo.activation=tanh", "ppo.lr=1e-3", "env.force=2",
    "resume=null", "seed=7",
  )  # fmt: skip
  assert (config.num_envs, config.max_steps) == (128, 1000000)
  assert (config.max_seconds, config.run_dir) == (3.0, "2024")
  ppo = config.ppo
  assert (ppo.precision, ppo.layer_norm, ppo.hidden) == (Precision.bf16, True, [8, 4])
  assert (ppo.activation, ppo.lr) == (Activation.tanh, 1e-3)
  assert (config.env.force, type(config.env.force), config.resume, config.seed) == (2.0, float, None, 7)


@pytest.mark.parametrize("name", ["[red]", "010", "1e3", "true", "a #b", "a: b", "{x}", "*x", "2024-01-01"])
def test_a_string_is_taken_as_it_is(name):
  assert parse(f"run_dir={name}").run_dir == name


def test_numbers_are_decimal():
  config = parse("num_envs=064", "ppo.hidden=[010, 2]", "ppo.lr=1", "ppo.layer_norm=False")
  assert (config.num_envs, config.ppo.hidden, config.ppo.lr) == (64, [10, 2], 1.0)
  assert not config.ppo.layer_norm


@pytest.mark.parametrize(("key", "value"), [
  ("hidden", [[8]]), ("hidden", [8, [8]]), ("layer_norm", 2), ("layer_norm", 1), ("hidden", ["${seed}"])
])  # fmt: skip
def test_the_values_of_a_file_are_checked_too(key, value):
  with pytest.raises(ConfigError, match=rf"^ppo\.{key}="):
    assign(TrainConfig(), {f"ppo.{key}": value})


def test_a_task_overrides_the_trainers_defaults_and_words_override_both():
  assert parse().num_envs == 64
  assert parse().ppo.hidden == [16, 16]
  assert parse("num_envs=8", "ppo.hidden=[4]").ppo.hidden == [4]
  assert PPOConfig().hidden == [256, 128, 64]


def test_instances_share_no_defaults():
  first, second = TrainConfig(), TrainConfig()
  first.ppo.hidden.append(1)
  assert second.ppo.hidden == [256, 128, 64]


@pytest.mark.parametrize(("word", "message"), [
  ("ppo.layer_norm=flase", "ppo.layer_norm=flase is not true or false; the nearest is 'false'"),
  ("ppo.hidden=[a]", "ppo.hidden=[a] is not a list, each element a whole number"),
  ("seed=${num_envs", "seed=${num_envs: ${...} is not expanded; write the value itself"),
  ("num_envs=0x40", "num_envs=0x40 is not a whole number"),
  ("ppo.layer_norm=2", "ppo.layer_norm=2 is not true or false"),
  ("seed=18446744073709551616",
   "seed=18446744073709551616 is out of range; the nearest is 18446744073709551615"),
  (f"seed=1{'0' * 400}", f"seed=1{'0' * 400} is out of range; the nearest is 18446744073709551615"),
  (f"num_envs=-1{'0' * 400}", f"num_envs=-1{'0' * 400} is out of range; the nearest is 1"),
])  # fmt: skip
def test_a_mistake_is_one_line_that_names_it(word, message):
  """Others are in `tests/mistakes/test_words.py`."""
  with pytest.raises(ConfigError) as error:
    parse(word)
  assert str(error.value) == message


def test_settings_survive_as_plain_values():
  config = parse("ppo.precision=bf16", "env.force=3", "max_seconds=2.5")
  plain = to_dict(config)
  assert plain["ppo.precision"] == "bf16"
  assert {type(value) for value in plain.values()} <= {int, float, str, bool, list, type(None)}
  assert assign(defaults(toy), plain) == config


@pytest.mark.parametrize(
  ("horizon", "minibatches", "expected"), [(16, 2, 1), (16, 32, 2), (24, 4, 1), (5, 4, 4)]
)
def test_blocks_fill_every_minibatch_evenly(horizon, minibatches, expected):
  assert block(PPOConfig(horizon=horizon, minibatches=minibatches)) == expected


def test_environments_are_shared_evenly_or_not_at_all():
  config = dataclasses.replace(TrainConfig(), num_envs=4096)
  assert [local_envs(config, ranks) for ranks in (1, 2, 4)] == [4096, 2048, 1024]
  config.ppo.minibatches, config.ppo.horizon, config.num_envs = 32, 16, 30
  assert local_envs(config, 1) == 30
  with pytest.raises(ConfigError, match=r"^num_envs=30 does not divide .* 4 rank.*; the nearest is 32$"):
    local_envs(config, 4)
  config.num_envs = 1
  with pytest.raises(ConfigError, match=r"the nearest is 2$"):
    local_envs(config, 1)


@pytest.mark.parametrize("given", ["max_steps", "max_seconds", "max_iterations"])
def test_a_given_limit_replaces_the_tasks_own(given):
  module = SimpleNamespace(Config=toy.Config, TRAIN={"num_envs": 64, "max_steps": 1000})
  assert defaults(module).max_steps == 1000
  config = defaults(module, {given: "5"})
  assert config.max_steps is None
  assert config.num_envs == 64
  assert without_limits({"max_seconds": 9, "seed": 1}, {given}) == {"seed": 1}


def test_the_environments_of_a_task_are_those_of_its_algorithm():
  module = SimpleNamespace(Config=toy.Config, TRAIN={"num_envs": 64})
  assert [defaults(module, algorithm=name).num_envs for name in (None, "ppo", "td3")] == [64, 64, 128]
  module.TRAIN["algorithm"] = "sac"
  assert [defaults(module, algorithm=name).num_envs for name in (None, "sac", "td3")] == [64, 64, 128]


@dataclasses.dataclass
class Unlimited:
  """Settings of which one is a limit, by default none."""

  height: float = option(math.inf, "height that ends an episode", "m")
  speed: float = option(1.0, "speed", "m/s")


def test_no_limit_is_kept_where_it_is_the_default():
  assert assign(Unlimited(), to_dict(Unlimited())) == Unlimited()
  assert assign(Unlimited(), {"height": "2.5"}).height == 2.5
  for key, value in (("speed", "inf"), ("height", "nan")):
    with pytest.raises(ConfigError, match=f"^{key}={value} is not a finite number$"):
      assign(Unlimited(), {key: value})
