"""Keys of older versions that were renamed, or became constants."""

from collections.abc import Container, Iterable, Mapping
from typing import Any

from gpurobot.settings.values import to_text

RENAMED = {
  "sac.quiet_envs": "sac.greedy_envs",
  "td3.quiet_envs": "td3.greedy_envs",
  "env.joint_offset": "env.encoder_bias",
}
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


def renamed(key: str, known: Container[str]) -> str:
  """Return the present name of a key that is not among the `known` ones."""
  return key if key in known else RENAMED.get(key, key)


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
