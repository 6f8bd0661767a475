"""Counter-based random numbers on tensors: the same for any number of ranks, any split, and after a resume.

Each number is a hash of (seed, purpose) as key and (step, global environment index, component) as counter, by
"Squares" with four rounds (Widynski 2020, arXiv 2004.06278). Only torch integer operations on the device:
safe inside a captured graph.
"""

import hashlib
import math

import torch
from torch import Tensor

COMPONENT_BITS = 12  # numbers per environment, step and purpose: up to 4096
ENV_BITS = 24  # environments: up to 16.7 million
_WORD = 0xFFFFFFFF


def squares(counter: Tensor, key: int) -> Tensor:
  """Return 32 random bits, 0 ... 2^32 - 1, for each counter [int64, any shape]; products wrap at 64 bits."""
  y = counter * key
  z = y + key
  x = _rotate(torch.addcmul(y, y, y))
  x = _rotate(torch.addcmul(z, x, x))
  x = _rotate(torch.addcmul(y, x, x))
  return torch.addcmul(z, x, x, out=x).bitwise_right_shift_(32).bitwise_and_(_WORD)


def _rotate(x: Tensor) -> Tensor:
  """Return the 64-bit words with their halves exchanged; x is overwritten."""
  low = x << 32
  return (
    x.bitwise_right_shift_(32).bitwise_and_(_WORD).bitwise_or_(low)
  )  # the shift carries the sign: mask it off


def make_key(seed: int, purpose: str) -> int:
  """Return the odd 64-bit key, as a signed number, of a seed and purpose."""
  digest = hashlib.blake2b(f"{seed}:{purpose}".encode(), digest_size=8).digest()
  return int.from_bytes(digest, "little", signed=True) | 1


class Random:
  """Random numbers of `num_envs` environments, the first of which has the global index `env_offset`.

  Within a step the same purpose gives the same numbers; `advance` moves all purposes to the next step.
  """

  def __init__(
    self, seed: int, num_envs: int, env_offset: int = 0, device: str | torch.device = "cpu"
  ) -> None:
    if not 0 <= env_offset <= env_offset + num_envs <= 2**ENV_BITS:
      raise ValueError(f"environment indices must lie in 0 ... {2**ENV_BITS}")
    self.seed, self.num_envs = seed, num_envs
    self.step = torch.zeros((), dtype=torch.int64, device=device)
    self._env = torch.arange(env_offset, env_offset + num_envs, dtype=torch.int64, device=device)[:, None]
    self._counters: dict[int, Tensor] = {}  # count -> [num_envs, count]: the counters at step 0

  def bits(self, purpose: str, shape: tuple[int, ...]) -> Tensor:
    """Return 32 random bits per number, int64 [num_envs, *shape]."""
    count = math.prod(shape)
    if count > 2**COMPONENT_BITS:
      raise ValueError(f"at most {2**COMPONENT_BITS} numbers per environment and purpose, not {count}")
    if count not in self._counters:
      components = torch.arange(count, dtype=torch.int64, device=self._env.device)
      self._counters[count] = (self._env << COMPONENT_BITS) + components
    counter = self._counters[count] + (self.step << (ENV_BITS + COMPONENT_BITS))
    return squares(counter, make_key(self.seed, purpose)).view(-1, *shape)

  def uniform(self, purpose: str, shape: tuple[int, ...], low: float = 0.0, high: float = 1.0) -> Tensor:
    """Return float32 numbers in [low, high), [num_envs, *shape]."""
    unit = (self.bits(purpose, shape) >> 8).float() * 2.0**-24  # 24 bits: exact in float32, never 1
    return unit.mul_(high - low).add_(low)

  def normal(self, purpose: str, shape: tuple[int, ...]) -> Tensor:
    """Return float32 standard normal numbers, [num_envs, *shape] (Box and Muller 1958)."""
    count = math.prod(shape)
    pairs = (count + 1) // 2
    radius, angle = (
      (self.bits(purpose, (2, pairs)) + 1).float().mul_(2.0**-32).unbind(1)
    )  # in (0, 1]: log is finite
    radius, angle = (-2.0 * radius.log()).sqrt_(), angle * (2 * math.pi)
    both = torch.cat([radius * angle.cos(), radius * angle.sin()], dim=1)
    return both[:, :count].reshape(-1, *shape)

  def advance(self) -> None:
    """Move to the next step."""
    self.step += 1

  def state_dict(self) -> dict[str, Tensor]:
    """Return the step counter; seed and indices come from the configuration."""
    return {"step": self.step.clone()}

  def load_state_dict(self, state: dict[str, Tensor]) -> None:
    """Continue the streams at a saved step."""
    self.step.copy_(state["step"])
