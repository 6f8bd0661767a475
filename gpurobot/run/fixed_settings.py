"""Settings that a checkpoint fixes, because its network, its steps or its replay buffer depend on them."""

from collections.abc import Iterable, Mapping
from typing import Any

from gpurobot.settings import removed_keys
from gpurobot.settings.config import OFF_POLICY, TrainConfig, arguments, off_policy, policy_group, to_dict

NETWORK = (
  *("hidden", "critic_hidden", "critic", "shared", "layer_norm", "activation", "network"),
  *("encoder", "encoder_features", "encoder_shared", "recurrent", "recurrent_units", "squash", "state_std"),
  "estimate",
)
REPLAY = ("buffer_size", "storage", "storage_blocks", "prioritized")


def of_a_run(config: TrainConfig, saved: Mapping[str, Any]) -> str:
  """Return the settings of a checkpoint that a resumed run must keep, if they differ; "": none do.

  Steps are counted as iterations times environments times horizon. A setting that became a constant must
  have had its value.
  """
  group, instead = policy_group(config.algorithm), f"start a new run by checkpoint={config.resume}"
  other = _others(config, saved, ["num_envs", f"{group}.horizon"])
  gone = removed_keys.successor(removed_keys.present(saved))
  return _conflict("it", other, instead) or (f"{gone}; {instead}" if gone else "")


def of_a_buffer(config: TrainConfig, saved: Mapping[str, Any]) -> str:
  """Return the settings of a checkpoint's replay buffer that differ from the present ones; "": none do."""
  if config.algorithm not in OFF_POLICY:
    return ""
  group = policy_group(config.algorithm)
  names = [*REPLAY, "n_step"] if off_policy(config).prioritized else REPLAY  # which steps have a priority
  other = _others(config, saved, [f"{group}.{name}" for name in names])
  return _conflict("its replay buffer", other, f"add {group}.save_buffer=false to fill a new one")


def of_a_network(config: TrainConfig, saved: Mapping[str, Any]) -> str:
  """Return the settings of a checkpoint's network that differ from the present ones; "": none do."""
  algorithm = saved.get("algorithm", config.algorithm)
  if policy_group(algorithm) != policy_group(config.algorithm):
    return f"it was trained with algorithm={algorithm}"
  other = _others(config, saved, [f"{policy_group(algorithm)}.{name}" for name in NETWORK])
  return f"it was trained with {arguments(other)}" if other else ""


def _others(config: TrainConfig, saved: Mapping[str, Any], keys: Iterable[str]) -> dict[str, Any]:
  """Return the values of a checkpoint's settings that differ from the present ones, by key."""
  now = to_dict(config)
  return {key: saved[key] for key in keys if key in now and key in saved and saved[key] != now[key]}


def _conflict(owner: str, other: Mapping[str, Any], instead: str) -> str:
  """Return the settings of a part of a checkpoint that differ, and two ways to go on; "": none differ."""
  return f"{owner} has {arguments(other)}; leave {' and '.join(other)} out, or {instead}" if other else ""
