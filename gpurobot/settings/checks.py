"""Settings that go together: errors where they contradict each other, and reasons why some have no effect."""

from collections.abc import Collection, Iterable, Iterator

from gpurobot.settings.algorithms import Schedule
from gpurobot.settings.config import (
  AlgorithmName,
  ConfigError,
  TrainConfig,
  arguments,
  local_envs,
  policy_group,
  to_dict,
)

# Settings of PPOConfig that distillation does not use: it learns from neither rewards nor a critic.
OF_REWARDS = (
  *("gamma", "gae_lambda", "bootstrap", "clip", "value_clip", "lr", "lr_max", "lr_scaling"),
  *("reference_minibatch", "schedule", "kl_target", "critic_coef", "entropy_coef", "entropy_coef_final"),
  *("entropy_steps", "bounds_coef", "mirror_coef", "mirror_augment", "loss", "reward_transform"),
  *("reward_scale", "estimate", "rnd", "amp"),
)
# Settings without effect: their names, another setting of their group, and its value that disables them.
IDLE = (
  (("lr_max", "kl_target"), "schedule", "constant"),
  (("reference_minibatch",), "lr_scaling", "none"),
  (("value_clip",), "critic", "twohot"),
  (("reward_scale",), "reward_transform", "none"),
  (("entropy_steps",), "entropy_coef_final", None),
  (("weight_steps",), "weight_final", None),
  (("recurrent_units", "sequence"), "recurrent", "none"),
  (("priority_alpha", "priority_beta"), "prioritized", False),
  (("storage_blocks",), "storage", "float32"),
  (("target_noise_clip",), "target_noise", 0),
  (("mix_steps",), "mix", 0),
)
STARTS = ("log_std_init", "alpha")  # initial values of learnt parameters


def check(config: TrainConfig, given: Iterable[str], ranks: int) -> None:
  """Raise ConfigError if settings contradict each other, or if a `given` key has no effect."""
  for key, reason, remedy in _unused(config, given):
    raise ConfigError(f"{key} has no effect {reason}; write {remedy}, or no {key}")
  check_overlap(config)
  if config.algorithm is AlgorithmName.distill and not config.teacher:
    raise ConfigError("algorithm=distill learns from a teacher; add teacher=<run folder or .pt file>")
  if config.teacher and config.algorithm is not AlgorithmName.distill:
    raise ConfigError(
      f"teacher={config.teacher} has no effect with algorithm={config.algorithm}; add algorithm=distill"
    )
  local_envs(config, ranks)


def check_overlap(config: TrainConfig) -> None:
  """Raise ConfigError if settings of the overlap of simulation and learning contradict others."""
  if config.overlap and config.algorithm is not AlgorithmName.ppo:
    raise ConfigError(f"overlap=true is for algorithm=ppo; leave it out with algorithm={config.algorithm}")
  for key in ("sim_device", "sim_threads"):
    value = getattr(config, key)
    if value is not None and not config.overlap:
      raise ConfigError(f"{key}={value} has no effect without overlap=true; write both, or no {key}")


def without_effect(
  config: TrainConfig, given: Collection[str], of_files: Collection[str], changed: Collection[str]
) -> dict[str, str]:
  """Return the keys without effect, with the reason, among the `given` keys and the files' keys.

  A file may serve several algorithms. The `changed` keys differ from the defaults, or from a resumed run's.
  """
  values, found = to_dict(config), {}
  for group, _, name in (key.rpartition(".") for key in (*given, *of_files) if not key.startswith("env.")):
    for names, other, value in IDLE:
      key = f"{group}.{other}"
      if name in names and key in values and values[key] == value:
        found[f"{group}.{name}"] = f"with {arguments({key: values[key]})}"
  if config.resume:
    found |= {key: "on a resumed run" for key in changed if key.partition(".")[2] in STARTS}
    if "ppo.lr" in changed and config.ppo.schedule is Schedule.adaptive:
      found["ppo.lr"] = (
        "for long: ppo.schedule=adaptive goes on from it; to keep it add ppo.schedule=constant"
      )
  return found | {key: reason for key, reason, _ in _unused(config, of_files)}


def _unused(config: TrainConfig, keys: Iterable[str]) -> Iterator[tuple[str, str, str]]:
  """Yield the keys that the algorithm or its rewards do not use, with the reason and the remedy."""
  ppo, unused = config.ppo, unused_keys(config.algorithm)
  weights = {
    "ppo.rnd.weight": ppo.rnd.weight or ppo.rnd.weight_final,
    "ppo.amp.style_weight": ppo.amp.style_weight,
  }
  for key in keys:
    if is_among(key, unused):
      yield key, f"with algorithm={config.algorithm}", f"algorithm={key.partition('.')[0]}"
    for weight, value in weights.items():
      if not value and key != weight and key.rpartition(".")[0] == weight.rpartition(".")[0]:
        yield key, f"with {weight}=0", f"another {weight}"


def unused_keys(algorithm: str) -> set[str]:
  """Return the keys, and the groups of keys, that have no effect with an algorithm."""
  groups: set[str] = {*AlgorithmName} - {algorithm, policy_group(algorithm)}
  unused = OF_REWARDS if algorithm == AlgorithmName.distill else ()
  return groups | {f"{AlgorithmName.ppo}.{name}" for name in unused}


def is_among(key: str, keys: Collection[str]) -> bool:
  """Return whether a dotted key, or a group that contains it, is among `keys`."""
  return any(key == known or key.startswith(f"{known}.") for known in keys)
