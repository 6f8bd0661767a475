"""Counter-based random numbers on tensors: the same for any number of ranks and after a resume.

Each environment and step has its own seed, a hash of (seed, step, global environment index). From there each
purpose draws a short section of the SplitMix64 sequence (Steele, Lea and Flood 2014), with its own offset.
Only integer operations of torch on the device are used, which a CUDA graph can capture.
"""

import hashlib
import math
import struct

import torch
from torch import Tensor

ENV_BITS = 24  # at most 16.7 million environments


def _signed(word: int) -> int:
  """Return a 64-bit word as a signed number, as torch has no unsigned int64."""
  return word - 2**64 if word >= 2**63 else word


GAMMA = _signed(0x9E3779B97F4A7C15)  # increment from one number of a stream to the next
_ROUNDS = ((30, _signed(0xBF58476D1CE4E5B9)), (27, _signed(0x94D049BB133111EB)))
_LAST_SHIFT = 31


def mix(z: Tensor) -> Tensor:
  """Return the bijective SplitMix64 hash of 64-bit words z int64 [...], in place."""
  for shift, factor in _ROUNDS:
    z.bitwise_xor_(_shifted(z, shift)).mul_(factor)
  return z.bitwise_xor_(_shifted(z, _LAST_SHIFT))


def _shifted(z: Tensor, bits: int) -> Tensor:
  """Return the words [...] shifted right without sign extension."""
  return (z >> bits).bitwise_and_(2 ** (64 - bits) - 1)


def _halves(z: Tensor) -> Tensor:
  """Return 64-bit words [..., n] as 32-bit halves [..., 2 n], low half first."""
  if torch.compiler.is_compiling():  # torch.compile does not fuse over a view of another dtype
    return torch.stack([z, z >> 32], -1).to(torch.int32).flatten(-2)
  return z.view(torch.int32)


@torch.compiler.assume_constant_result
def _below(high: float) -> float:
  """Return the largest float32 number below `high`."""
  (word,) = struct.unpack("<i", struct.pack("<f", high))  # integers are ordered as the floats they encode
  word = word - 1 if high > 0 else word + 1 if high < 0 else 1 - 2**31
  (number,) = struct.unpack("<f", struct.pack("<i", word))
  return float(number)


def make_key(seed: int, purpose: str) -> int:
  """Return the 64-bit key, as a signed number, of a seed and purpose."""
  digest = hashlib.blake2b(f"{seed}:{purpose}".encode(), digest_size=8).digest()
  return int.from_bytes(digest, "little", signed=True)


class Random:
  """Random numbers for `num_envs` environments, from the global index `env_offset` on.

  Within a step the same purpose returns the same numbers; `advance` moves all purposes to the next step.
  """

  def __init__(
    self, seed: int, num_envs: int, env_offset: int = 0, device: str | torch.device = "cpu"
  ) -> None:
    if not 0 <= env_offset <= env_offset + num_envs <= 2**ENV_BITS:
      raise ValueError(f"environment indices must be in 0 ... {2**ENV_BITS}")
    self.num_envs = num_envs
    self.step = torch.zeros((), dtype=torch.int64, device=device)
    self._envs = torch.arange(env_offset, env_offset + num_envs, dtype=torch.int64, device=device)[:, None]
    self._seeds = torch.zeros_like(self._envs)  # [num_envs, 1], of the current step
    self.reseed(seed)

  def reseed(self, seed: int) -> None:
    """Restart with another seed, at step 0."""
    self.seed = seed
    self._first = self._envs * GAMMA + make_key(seed, "")  # [num_envs, 1], the counter of step 0
    self._offsets: dict[tuple[str, int], Tensor] = {}  # (purpose, words) -> offsets of its numbers [words]
    self.step.zero_()
    self._seed()

  def bits(self, purpose: str, shape: tuple[int, ...]) -> Tensor:
    """Return int32 numbers [num_envs, *shape] of 32 random bits each."""
    count = math.prod(shape)
    words = (count + 1) // 2
    if (purpose, words) not in self._offsets:
      self._find_offsets(purpose, words)
    numbers = _halves(mix(self._seeds + self._offsets[purpose, words]))
    return numbers[:, :count].view(-1, *shape)

  @torch.compiler.disable  # torch.compile folds these constants without 64-bit overflow
  def _find_offsets(self, purpose: str, words: int) -> None:
    offsets = torch.arange(1, words + 1, dtype=torch.int64, device=self.step.device) * GAMMA
    self._offsets[purpose, words] = offsets + make_key(self.seed, purpose)

  def uniform(self, purpose: str, shape: tuple[int, ...], low: float = 0.0, high: float = 1.0) -> Tensor:
    """Return uniform float32 numbers [num_envs, *shape] in [low, high)."""
    unit = (self.bits(purpose, shape) >> 8).float()  # 24 bits and the sign: exact in float32
    numbers = unit.mul_((high - low) * 2.0**-24).add_((low + high) / 2)
    return numbers.clamp_(max=_below(high)) if high > low else numbers  # a sum may round to `high`

  def normal(self, purpose: str, shape: tuple[int, ...]) -> Tensor:
    """Return standard normal float32 numbers [num_envs, *shape] (Box and Muller 1958)."""
    count = math.prod(shape)
    pairs = (count + 1) // 2
    first, second = self.bits(purpose, (2, pairs)).unbind(1)
    unit = first.bitwise_and(2**31 - 1).float().add_(1).mul_(2.0**-31)  # in (0, 1]: its logarithm is finite
    radius, angle = unit.log_().mul_(-2).sqrt_(), second.float().mul_(math.pi * 2.0**-31)
    both = torch.stack([angle.cos().mul_(radius), angle.sin().mul_(radius)], dim=1)
    return both.flatten(1)[:, :count].view(-1, *shape)

  def advance(self) -> None:
    """Move to the next step."""
    self.step += 1
    self._seed()

  def _seed(self) -> None:
    """Hash the seeds of the current step from the counters (step, environment)."""
    self._seeds.copy_(mix(self._first + (self.step << ENV_BITS) * GAMMA))

  def state_dict(self) -> dict[str, Tensor]:
    """Return the step counter; seed and indices come from the configuration."""
    return {"step": self.step.clone()}

  def load_state_dict(self, state: dict[str, Tensor]) -> None:
    """Continue the streams at a saved step."""
    self.step.copy_(state["step"])
    self._seed()
