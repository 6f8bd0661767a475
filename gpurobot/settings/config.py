"""Settings: typed dataclasses, set by `key=value` arguments.

An error names the nearest valid key or value. The metadata of each field holds its meaning ("help") and its
"unit", which `--help` prints.
"""

import dataclasses
import functools
import math
import typing
from collections.abc import Collection, Mapping, Sequence
from enum import StrEnum
from types import ModuleType
from typing import Any

from omegaconf import DictConfig, OmegaConf
from omegaconf.errors import OmegaConfBaseException

from gpurobot.settings.algorithms import (
  OFF_POLICY_ENVS,
  AlgorithmConfig,
  DistillConfig,
  PPOConfig,
  Recurrence,
  SACConfig,
  TD3Config,
)
from gpurobot.settings.removed_keys import RENAMED, successor
from gpurobot.settings.values import expected, fitting, plain, to_text
from tasks.core.option import option
from tasks.core.words import suggestion

LARGEST = {bool: 1, int: 2**63 - 1, float: 3.4028234663852886e38}  # limits of int64 and float32 tensors
MOST_ENVS = 2**24
CHANGED = "accept a saved policy though the task's columns, actions or joints, or the robot's model, changed"
LIMITS = ("max_iterations", "max_steps", "max_seconds")  # the settings that end training


class ConfigError(ValueError):
  """A mistake in the settings; the message is one line that names it."""


class AlgorithmName(StrEnum):
  """Name of a learning algorithm."""

  ppo = "ppo"
  sac = "sac"
  td3 = "td3"
  distill = "distill"


OFF_POLICY = (AlgorithmName.sac, AlgorithmName.td3)


class Switch(StrEnum):
  """Switch of a feature; auto: it depends on the device."""

  auto = "auto"
  on = "on"
  off = "off"


class ConsoleStyle(StrEnum):
  """Console output of a training; auto: a live table on a terminal, lines elsewhere."""

  auto = "auto"
  lines = "lines"
  none = "none"


@dataclasses.dataclass
class LogConfig:
  """Log."""

  console: ConsoleStyle = option(
    ConsoleStyle.auto,
    "auto: a live table on a terminal, lines elsewhere; lines; none: warnings alone",
  )
  images_every: int | None = option(
    10, "rows of the log between pictures of the policy's images; null: none", low=1
  )
  wandb: str | None = option(None, "project at Weights & Biases that gets the log too; null: none")
  mlflow: str | None = option(None, "experiment at MLFLOW_TRACKING_URI that gets the log too; null: none")


@dataclasses.dataclass
class TrainConfig:
  """Training."""

  task: str = option("ant", "task: a module of tasks/, a dotted module path, or a path to a .py file")
  algorithm: AlgorithmName = option(
    AlgorithmName.ppo,
    "learning algorithm: ppo, on-policy; sac or td3, off-policy; distill, from a teacher",
  )
  teacher: str | None = option(
    None, "run folder or .pt file of the teacher with algorithm=distill; several: <one>,<another>"
  )
  num_envs: int = option(4096, "number of environments, over all ranks", low=1, high=MOST_ENVS)
  seed: int = option(0, "seed of all random numbers", low=0, high=2**64 - 1)
  device: str = option("auto", "device: cpu, cuda, cuda:<index>; auto: cuda where there is one")
  threads: int | None = option(
    None, "CPU threads per rank; null: all cores, divided among the ranks", low=1, high=1024
  )
  overlap: bool = option(
    False, "collect the next rollout while PPO learns from the last one, which V-trace corrects"
  )
  sim_device: str | None = option(
    None, "device of the environments if not the network's, such as cpu; needs overlap=true"
  )
  sim_threads: int | None = option(
    None, "CPU threads that simulate with overlap=true; null: half of them beside a CPU that learns", low=1
  )
  max_iterations: int | None = option(None, "maximum number of iterations", low=0)
  max_steps: int | None = option(None, "maximum number of environment steps, over all ranks", low=0)
  max_seconds: float | None = option(None, "maximum training time", "s", low=0)
  run_dir: str | None = option(None, "run folder; null: runs/<task>/<date-time>-<seed>")
  checkpoint: str | None = option(None, "run folder or .pt file from which to take the initial network")
  resume: str | None = option(
    None,
    "run folder or .pt file to resume; the numbers continue exactly; auto: run_dir, if it has a checkpoint",
  )
  changed: bool = option(False, CHANGED)
  checkpoint_seconds: float = option(120.0, "time between checkpoints", "s", low=0)
  log_every: int = option(10, "iterations between log lines", low=1)
  record_every: int | None = option(
    None, "iterations between videos of the policy, drawn by another process; null: no videos", low=1
  )
  profile: bool = option(False, "profile a few iterations: a table and a trace in the run folder")
  tf32: bool = option(
    False, "on CUDA, multiply and convolve float32 in TF32 (10 bits of mantissa, several times faster)"
  )
  compile: Switch = option(
    Switch.auto, "use torch.compile for all but the physics; auto: on CUDA, and C++ for long runs on a CPU"
  )
  graphs: Switch = option(
    Switch.auto,
    "use CUDA graphs for rollout and update; auto: on CUDA; off: no replay of operations on a CPU either",
  )
  debug: bool = option(False, "show the traceback of an error")
  log: LogConfig = dataclasses.field(default_factory=LogConfig)
  ppo: PPOConfig = dataclasses.field(default_factory=PPOConfig)
  sac: SACConfig = dataclasses.field(default_factory=SACConfig)
  td3: TD3Config = dataclasses.field(default_factory=TD3Config)
  distill: DistillConfig = dataclasses.field(default_factory=DistillConfig)
  env: Any = option(None, "settings of the task")


@dataclasses.dataclass(frozen=True)
class Leaf:
  """One setting: its type, its current value, and the metadata of its field."""

  kind: Any
  value: Any
  metadata: Mapping[str, Any]


def leaves(config: Any, prefix: str = "") -> dict[str, Leaf]:
  """Return the settings of a dataclass instance by key; dots join nested keys."""
  found: dict[str, Leaf] = {}
  kind: type = type(config)
  kinds = _kinds(kind)
  for field in dataclasses.fields(config):
    value = getattr(config, field.name)
    if dataclasses.is_dataclass(value):
      found |= leaves(value, f"{prefix}{field.name}.")
    else:
      found[prefix + field.name] = Leaf(kinds[field.name], value, field.metadata)
  return found


@functools.cache
def _kinds(kind: type) -> dict[str, Any]:
  """Return the types of the fields of a dataclass, which are slow to resolve."""
  return typing.get_type_hints(kind)


def pairs(words: list[str], keys: typing.Iterable[str]) -> dict[str, str]:
  """Split `key=value` arguments; raise ConfigError on any other argument and on a key not in `keys`."""
  known = list(keys)
  split: dict[str, str] = {}
  for word in words:
    name, equals, value = word.partition("=")
    key = name if name in known else RENAMED.get(name, name)
    if word != word.encode(errors="ignore").decode():  # bytes that the terminal did not encode
      raise ConfigError(f"{word!a} is not UTF-8 text; rename what it names")
    if word.startswith("-") and key.lstrip("-") in known:
      raise ConfigError(f"'{word}': keys have no dashes; write {key.lstrip('-')}={value or '<value>'}")
    if not equals and key not in known:
      raise ConfigError(f"'{word}' is not of the form key=value; --help lists every key")
    if key not in known:
      raise ConfigError(successor([key]) or f"unknown key '{key}'{suggestion(key, known)}")
    if not value.strip():
      raise ConfigError(f"'{word}' has no value; write {key}=<value>")
    split[key] = value
  return split


def defaults(module: ModuleType, given: Collection[str] = (), algorithm: str | None = None) -> TrainConfig:
  """Return a task's default settings: the trainer's, overridden by the task's own.

  A task overrides them in `TRAIN`, and an algorithm's in `PPO`, `SAC`, `TD3` and `DISTILL`. Its number of
  environments is for its own algorithm, PPO unless `TRAIN` names another. The default for any other
  off-policy `algorithm` is OFF_POLICY_ENVS.

  If one of LIMITS is among the `given` keys, the task's own limits are dropped.
  """
  config = TrainConfig(env=module.Config())
  overrides = without_limits(getattr(module, "TRAIN", {}), given)
  if algorithm in OFF_POLICY and algorithm != overrides.get("algorithm"):
    overrides["num_envs"] = OFF_POLICY_ENVS
  for name in AlgorithmName:
    own = getattr(module, name.upper(), {})
    overrides |= {f"{name}.{key}": value for key, value in own.items()}
  try:
    return assign(config, overrides)
  except ConfigError as error:
    raise ConfigError(f"the task's Config, TRAIN, PPO, SAC, TD3 or DISTILL: {error}") from error


def code_keys(config: Any) -> set[str]:
  """Return the keys of the settings that name a file which can run code."""
  return {key for key, leaf in leaves(config).items() if leaf.metadata.get("code")}


def without_limits(values: Mapping[str, Any], given: Collection[str]) -> dict[str, Any]:
  """Return values by key, without LIMITS if any of these is among the `given` keys."""
  replaced = any(key in LIMITS for key in given)
  return {key: value for key, value in values.items() if not (replaced and key in LIMITS)}


C = typing.TypeVar("C")


def assign(config: C, values: Mapping[str, Any]) -> C:
  """Return the dataclass with values (strings or objects) set by dotted key; raise ConfigError on errors."""
  known = leaves(config)
  try:
    schema = OmegaConf.structured(config)
  except OmegaConfBaseException as error:
    raise ConfigError(f"{error.full_key}: {str(error.msg).partition(chr(10))[0]}") from error
  for name, value in values.items():
    key = name if name in known else RENAMED.get(name, name)
    if key not in known:
      raise ConfigError(successor([key]) or f"unknown key '{key}'{suggestion(key, known)}")
    _set(schema, key, value, known[key].kind)
    check_range(key, OmegaConf.select(schema, key), known[key])
  return typing.cast(C, OmegaConf.to_object(schema))


def _set(schema: DictConfig, key: str, value: Any, kind: Any) -> None:
  """Set one key of a structured config from a string or an object; raise ConfigError if it does not fit."""
  if "${" in str(value):  # OmegaConf would expand it
    raise ConfigError(f"{key}={value}: ${{...}} is not expanded; write the value itself")
  if value == "???":  # OmegaConf's mark of a missing value
    raise ConfigError(f"{key}={value} is no value; write the value itself")
  try:
    OmegaConf.update(schema, key, fitting(value, kind))
  except Exception as error:  # OmegaConf and the YAML parser raise many types
    raise ConfigError(f"{key}={value} is not {expected(kind, str(value))}") from error


def check_range(key: str, value: Any, leaf: Leaf) -> None:
  """Raise ConfigError if a number, or one of a list, is beyond the range of its setting."""
  for number in value if isinstance(value, Sequence) else [value]:
    if not isinstance(number, int | float) or number == leaf.value:  # inf may be the default: no limit
      continue
    if isinstance(number, float) and not math.isfinite(number):
      raise ConfigError(f"{key}={value} is not a finite number")
    most = LARGEST[type(number)]
    low, high = (leaf.metadata.get(end, math.inf) for end in ("low", "high"))
    low, high = low if math.isfinite(low) else -most, high if math.isfinite(high) else most
    if not low <= number <= high:
      raise ConfigError(f"{key}={value} is out of range; the nearest is {low if number < low else high}")


def to_dict(config: Any) -> dict[str, Any]:
  """Return dotted key -> plain value (number, string, list) of every setting; `assign` reads it back."""
  return {key: plain(leaf.value) for key, leaf in leaves(config).items()}


def arguments(values: Mapping[str, Any]) -> str:
  """Return plain values by key as a user writes them on the command line."""
  return " ".join(f"{key}={to_text(value)}" for key, value in values.items())


def local_envs(config: TrainConfig, ranks: int) -> int:
  """Return the number of environments per rank; raise ConfigError if they do not divide evenly.

  Each rank has the same number, and so has each of its minibatches.
  """
  if config.algorithm in OFF_POLICY:
    return _local_envs_of_blocks(config, ranks)
  unit = ranks * block(config.ppo)
  if config.num_envs % unit:
    near = max(unit, round(config.num_envs / unit) * unit)
    raise ConfigError(
      f"num_envs={config.num_envs} does not divide evenly among {ranks} rank(s) and {config.ppo.minibatches} "
      f"minibatch(es) of horizon {config.ppo.horizon}; the nearest is {near}"
    )
  return config.num_envs // ranks


def _local_envs_of_blocks(config: TrainConfig, ranks: int) -> int:
  """Return the number of environments per rank where each block of them gives equally many transitions."""
  batch_size = off_policy(config).batch_size
  if math.gcd(config.num_envs, batch_size) % ranks:
    raise ConfigError(
      f"num_envs={config.num_envs} and {config.algorithm}.batch_size={batch_size} do not both divide evenly "
      f"among {ranks} ranks; take multiples of {ranks}"
    )
  return config.num_envs // ranks


def policy_group(algorithm: str) -> str:
  """Return the settings group of an algorithm's policy; a student has PPO's."""
  return AlgorithmName.ppo if algorithm == AlgorithmName.distill else algorithm


def algorithm_settings(config: TrainConfig) -> AlgorithmConfig:
  """Return the settings of the algorithm in use; a student's policy has PPO's."""
  return off_policy(config) if config.algorithm in OFF_POLICY else config.ppo


def off_policy(config: TrainConfig) -> SACConfig | TD3Config:
  """Return the settings of the off-policy algorithm in use."""
  return config.td3 if config.algorithm is AlgorithmName.td3 else config.sac


def block(ppo: PPOConfig) -> int:
  """Return the smallest number of environments with sequences that divide evenly among the minibatches."""
  sequences = ppo.horizon // sequence_length(ppo)
  return ppo.minibatches // math.gcd(ppo.minibatches, sequences)


def sequence_length(ppo: PPOConfig) -> int:
  """Return the number of consecutive steps in a sequence of a minibatch: 1 without a recurrent layer.

  Raises ConfigError if it does not divide the horizon.
  """
  if ppo.recurrent is Recurrence.none:
    return 1
  length = ppo.sequence or ppo.horizon
  if ppo.horizon % length:
    near = min((n for n in range(1, ppo.horizon + 1) if ppo.horizon % n == 0), key=lambda n: abs(n - length))
    raise ConfigError(
      f"ppo.sequence={length} does not divide ppo.horizon={ppo.horizon}; the nearest is {near}"
    )
  return length


class Load(typing.Protocol):
  """Loader of a task, as `tasks.load` is: the module with Config and Task for a name."""

  def __call__(self, name: str, source: str | None = None, given: str | None = None) -> ModuleType:
    """Return the module; `source` is the checkpoint with the name, `given` the user's name for it."""
