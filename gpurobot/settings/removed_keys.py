"""Keys of older versions that were renamed, or became constants."""

from collections.abc import Iterable, Mapping
from typing import Any

from gpurobot.settings.values import to_text

RENAMED = {f"{name}.quiet_envs": f"{name}.greedy_envs" for name in ("sac", "td3")}
RENAMED["env.joint_offset"] = "env.encoder_bias"  # but where a task has a setting of the old name
# Constants of the modules of gpurobot/learn/ that use them, where their reasons are.
CONSTANTS: dict[str, Any] = {
  "ppo.lr_min": 1e-6,
  "ppo.rnd.updates": 4,
  "ppo.rnd.samples": 2,
  "ppo.amp.weight_decay": 1e-4,
  "ppo.amp.replay": 32,
  "sac.priority_steps": 1_000_000,
  "td3.priority_steps": 1_000_000,
  "sac.policy_tau": 0.003,
  "td3.policy_tau": 0.003,
  "sac.max_grad_norm": 1.0,
  "td3.max_grad_norm": 1.0,
}


def present(saved: Mapping[str, Any]) -> dict[str, Any]:
  """Return saved settings without those with the value of the constant."""
  return {key: value for key, value in saved.items() if key not in CONSTANTS or value != CONSTANTS[key]}


def without_constants(saved: Mapping[str, Any]) -> dict[str, Any]:
  """Return saved settings as far as they exist: those that a policy needs."""
  return {key: value for key, value in saved.items() if key not in CONSTANTS}


def successor(keys: Iterable[str]) -> str:
  """Return the constant that the first gone key became, for a message; "" if none of the keys is gone."""
  gone = [key for key in keys if key in CONSTANTS]
  return f"{gone[0]} is gone: it is {to_text(CONSTANTS[gone[0]])} always" if gone else ""
