"""Observation groups made of named blocks, with noise, delays, history and mirror images; camera images."""

import math
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor

from tasks.core.image import Range, find_images, is_image
from tasks.core.names import hint, settings
from tasks.core.shapes import like
from tasks.core.validation import APART, check_blocks

# (purpose, shape, low, high) -> random numbers [num_envs, *shape]
Uniform = Callable[[str, tuple[int, ...], float, float], Tensor]
Blocks = Mapping[str, Mapping[str, Tensor]]  # group -> block -> [num_envs], [num_envs, n] or an image
# Mirror image of a block: the signs of its numbers, or (index, signs) if they are also permuted. A mirrored
# x[i] is signs[i] * x[index[i]].
Reflection = Sequence[int] | tuple[Sequence[int], Sequence[int]]


class Observations:
  """Observation groups of a task: one float32 tensor [num_envs, width] for each group of named blocks.

  The Config field `noise_<block>` is the largest error of a block of the group `policy`. `delay_<group>` is
  the largest delay of a group in control steps; a whole number is drawn for each episode. `history_<group>`
  is the number of consecutive observations in a group, the oldest first.

  A block [num_envs, height, width, channels] is an image. It stays apart, under its own name beside the
  groups, without their noise, delay and history. `stack_<image>` is the number of consecutive frames in its
  channels, the oldest first.
  """

  def __init__(
    self,
    blocks: Blocks,
    config: Any,
    hidden: Collection[str] = (),
    ranges: Mapping[str, Range] | None = None,
    *,
    noisy: bool,
  ) -> None:
    """Take names and shapes from blocks [num_envs, ...]; raise ValueError at a misnamed field.

    hidden: blocks that a setting takes from the policy, with noise that has no effect. ranges: smallest and
    largest number of each image that is not uint8.
    """
    self._ranges = ranges or {}
    self._frames = find_images(blocks, self._ranges)
    self.widths = _widths(blocks)
    given = _chosen(config, "stack_", self._frames) if self._frames else {}
    self.stacks = stacks = dict.fromkeys(self._frames, 1) | given
    self.images = {name: frame.stacked(stacks[name]) for name, frame in self._frames.items()}
    self.lengths = dict.fromkeys(blocks, 1) | _chosen(config, "history_", self.widths)
    first = next(iter(blocks["policy"].values()))
    self._device = first.device
    self._like = torch.zeros(len(first), device=first.device)  # what blocks have in common
    amplitudes = self._amplitudes(config, hidden)
    self._amplitude = torch.tensor(amplitudes, device=self._device) if noisy and any(amplitudes) else None
    self._error: Tensor | None = None  # of the group `policy` in the present step
    num_envs, widths = len(first), {group: sum(named.values()) for group, named in self.widths.items()}
    self._delays = {
      group: Delay(self._like.new_zeros(num_envs, widths[group]), steps)
      for group, steps in _chosen(config, "delay_", self.widths).items()
      if noisy and steps
    }
    self._histories = {
      group: Past(self._like.new_zeros(num_envs, widths[group]), length)
      for group, length in self.lengths.items()
      if length > 1
    }
    self._stacks = {
      name: Past(frame.stored(blocks[frame.groups[0]][name]), stacks[name])
      for name, frame in self._frames.items()
      if stacks[name] > 1
    }

  @property
  def dims(self) -> dict[str, int]:
    """The width of each group that an agent observes, including past observations."""
    groups = [group for group in self.widths if group not in APART]
    return {group: self.lengths[group] * sum(self.widths[group].values()) for group in groups}

  @property
  def names(self) -> dict[str, list[str]]:
    """The block of each column, by group."""
    return {
      group: self.lengths[group] * [name for name, width in widths.items() for _ in range(width)]
      for group, widths in self.widths.items()
    }

  @property
  def memory(self) -> dict[str, Tensor]:
    """Tensors kept from step to step [num_envs, ...], by name."""
    past = {f"past {group}": history.memory for group, history in self._histories.items()}
    delayed = {f"delayed {group}": delay.memory for group, delay in self._delays.items()}
    stacked = {f"frames of {name}": stack.memory for name, stack in self._stacks.items()}
    return past | stacked | delayed | {f"age of {group}": delay.age for group, delay in self._delays.items()}

  def draw(self, uniform: Uniform) -> None:
    """Draw the noise of a step, used before and after its resets, and the delays for new episodes."""
    if self._amplitude is not None:
      self._error = self._amplitude * uniform("observation noise", self._amplitude.shape, -1.0, 1.0)
    for group, delay in self._delays.items():
      delay.next_age = uniform(f"delay of {group}", (), 0.0, delay.steps + 1.0).to(torch.int64)

  def push(self, blocks: Blocks) -> dict[str, Tensor]:
    """Return the groups [num_envs, width] and images [num_envs, ...] with these blocks as the latest."""
    parts = self._join(blocks)
    for pasts in (self._delays, self._histories, self._stacks):
      parts |= {name: past.push(parts[name]) for name, past in pasts.items()}
    return parts

  def restart(self, blocks: Blocks, ended: Tensor) -> dict[str, Tensor]:
    """Return groups and images; where `ended` [num_envs] is true, the blocks fill all history."""
    parts = self._join(blocks)
    for pasts in (self._delays, self._histories, self._stacks):
      parts |= {name: past.restart(parts[name], ended) for name, past in pasts.items()}
    return parts

  def finite_images(self, obs: Mapping[str, Tensor], finite: Tensor) -> Tensor:
    """Return where `finite` [num_envs] holds and all images are finite too."""
    for name, image in self.images.items():
      if image.kind != "uint8":
        finite = finite & obs[name].flatten(1).isfinite().all(1)
    return finite

  def mirror(self, symmetry: Mapping[str, Reflection], num_actions: int) -> dict[str, tuple[Tensor, Tensor]]:
    """Return (index, sign) [width] of `policy` and of `action`; a mirrored x is sign * x[..., index].

    `symmetry` holds the reflection of each block of the group `policy` and of `action`. Raises ValueError if
    one is missing, unknown, of the wrong width, or not its own inverse.
    """
    widths = self.widths["policy"]
    known = {**widths, "action": num_actions}
    for name in sorted({*symmetry} ^ {*known}):
      lacking = "symmetry() lacks it" if name in known else f"there is no such block, {hint(name, known)}"
      raise ValueError(f"symmetry of '{name}': {lacking}")
    frame = _side_by_side([_reflection(name, symmetry[name], width) for name, width in widths.items()])
    return {
      "policy": self._tensors(_side_by_side([frame] * self.lengths["policy"])),
      "action": self._tensors(_reflection("action", symmetry["action"], num_actions)),
    }

  def _amplitudes(self, config: Any, hidden: Collection[str]) -> list[float]:
    """Return the largest noise on each column of the policy; what it lost to its teacher has none."""
    own = {
      name: width for group in ("teacher", "policy") for name, width in self.widths.get(group, {}).items()
    }
    noise = _chosen(config, "noise_", own | dict.fromkeys(hidden, 0))
    return [noise.get(name, 0.0) for name, width in self.widths["policy"].items() for _ in range(width)]

  def _join(self, blocks: Blocks) -> dict[str, Tensor]:
    """Return each group as one tensor [num_envs, width], its blocks with noise, and the images.

    The environment index is the fastest in memory, as in the simulation: blocks are copied as they are.
    Raises ValueError if the blocks differ from the first observation's.
    """
    check_blocks(blocks, self._like)
    shapes = (_widths(blocks), find_images(blocks, self._ranges))
    for kind, first, now in zip(
      ("blocks of the widths", "the images"), (self.widths, self._frames), shapes, strict=True
    ):
      if first != now:
        raise ValueError(
          f"observe() returned {kind} {first} at first, and now {now}: return the same in every step"
        )
    parts = {
      group: torch.cat([_flat(blocks[group][name]).to(torch.float32).T for name in names]).T
      if names
      else self._like.new_zeros(len(self._like), 0)  # it sees images alone
      for group, names in self.widths.items()
    }
    if self._error is not None:
      parts["policy"] += self._error
    images = {name: frame.stored(blocks[frame.groups[0]][name]) for name, frame in self._frames.items()}
    return parts | images

  def _tensors(self, reflection: tuple[list[int], list[int]]) -> tuple[Tensor, Tensor]:
    index, sign = (torch.tensor(numbers, device=self._device) for numbers in reflection)
    return index, sign.to(torch.float32)


class Past:
  """History of a group or an image: its last observations, side by side, the oldest first."""

  def __init__(self, first: Tensor, length: int) -> None:
    """Keep `length` of what `first` [num_envs, ..., width] is the first of."""
    self.width, self.length = first.shape[-1], length
    self.memory = torch.zeros_like(self._repeated(first), memory_format=torch.contiguous_format)

  def _repeated(self, obs: Tensor) -> Tensor:
    return obs.repeat(*[1] * (obs.ndim - 1), self.length)

  def push(self, obs: Tensor) -> Tensor:
    """Append the latest observation [num_envs, ..., width]; return `shown()` [num_envs, ...]."""
    self.memory.copy_(torch.cat([self.memory[..., self.width :], obs], dim=-1))
    return self.shown()

  def restart(self, obs: Tensor, ended: Tensor) -> Tensor:
    """Fill the history with `obs` [num_envs, ..., width] where `ended` [num_envs]; return `shown()`."""
    self.memory.copy_(torch.where(like(ended, obs), self._repeated(obs), self.memory))
    return self.shown()

  def shown(self) -> Tensor:
    """Return the whole history [num_envs, ..., length * width]."""
    return self.memory.clone()


class Delay(Past):
  """Delay of a group: an observation from several steps ago, a number drawn for each episode."""

  def __init__(self, first: Tensor, steps: int) -> None:
    super().__init__(first, steps + 1)
    self.steps = steps  # the largest delay
    self.age = torch.zeros(len(first), dtype=torch.int64, device=first.device)  # [control steps]
    self.next_age = self.age

  def restart(self, obs: Tensor, ended: Tensor) -> Tensor:
    """Fill the history with `obs` [num_envs, width] and set new delays where `ended` [num_envs]."""
    self.age.copy_(torch.where(ended, self.next_age, self.age))
    return super().restart(obs, ended)

  def shown(self) -> Tensor:
    """Return the observation delayed by the age of the episode [num_envs, width]."""
    each = self.memory.unflatten(1, (self.length, self.width))
    return each.gather(1, (self.steps - self.age).view(-1, 1, 1).expand(-1, 1, self.width)).squeeze(1)


def _widths(blocks: Blocks) -> dict[str, dict[str, int]]:
  """Return the width of each block that is no image by name, by group."""
  return {
    group: {name: _flat(block).shape[1] for name, block in named.items() if not is_image(block)}
    for group, named in blocks.items()
  }


def _flat(block: Tensor) -> Tensor:
  """Return a block [num_envs] or [num_envs, ...] as [num_envs, n]."""
  return block.reshape(len(block), -1)


def _chosen(config: Any, prefix: str, known: Mapping[str, Any]) -> dict[str, Any]:
  """Return the settings with a prefix; raise ValueError if one has an unknown name or is out of range."""
  chosen, low = settings(config, prefix), 1 if prefix in ("history_", "stack_") else 0
  for name, value in chosen.items():
    if name not in known:
      raise ValueError(f"{prefix}{name}: observe() has no '{name}', {hint(name, known)}")
    if not low <= value < math.inf or (prefix != "noise_" and not isinstance(value, int)):
      kind = "number" if prefix == "noise_" else "whole number"
      raise ValueError(f"{prefix}{name}={value} is not a {kind} of {low} or more")
  return chosen


def _reflection(name: str, given: Reflection, width: int) -> tuple[list[int], list[int]]:
  """Return the index and the signs of a block of `width` numbers; raise ValueError if they do not fit."""
  index, sign = given if isinstance(given, tuple) else (range(width), given)
  index, sign = list(index), list(sign)
  if not len(index) == len(sign) == width:
    raise ValueError(f"symmetry of '{name}': {len(sign)} numbers, the block has {width}")
  for i, j in enumerate(index):
    if not 0 <= j < width or index[j] != i or sign[i] * sign[j] != 1:
      raise ValueError(f"symmetry of '{name}': mirrored twice, number {i} is not what it was")
  return index, sign


def _side_by_side(parts: list[tuple[list[int], list[int]]]) -> tuple[list[int], list[int]]:
  """Return the index and the signs of concatenated blocks."""
  indices: list[int] = []
  for index, _ in parts:
    start = len(indices)
    indices += [start + i for i in index]
  return indices, [number for _, sign in parts for number in sign]
