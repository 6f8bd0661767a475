"""Batches of an off-policy algorithm: drawn several at once, learnt from one by one."""

import math
from collections.abc import Mapping, Sequence

import torch
from tensordict import TensorDict
from torch import Tensor

from gpurobot.learn.env import VecEnv, images_of
from gpurobot.learn.network import Actor
from gpurobot.learn.normalize import ObservationNormalizer
from gpurobot.learn.replay_buffer import Draw, Transitions

Part = tuple[torch.dtype, tuple[int, ...]]  # type and shape of what a transition has
NUMBERS = ("reward", "discount", "weight", "importance", "age")


class _Parts:
  """Named parts of several batches, in one memory of each type, and the present batch's parts in another.

  So few copies make a batch the present one. Of a single batch both are the same memory.
  """

  def __init__(self, shape: tuple[int, int], parts: Mapping[str, Part], device: torch.device) -> None:
    """Allocate shape[0] batches of shape[1] rows of parts, each of a type and a shape."""
    self.all: dict[str, Tensor] = {}  # [batches, n, ...]
    self.present: dict[str, Tensor] = {}  # [n, ...]
    self._moves: list[tuple[Tensor, Tensor]] = []
    for kind in dict.fromkeys(kind for kind, _ in parts.values()):
      own = {name: (shape[1], *width) for name, (other, width) in parts.items() if other is kind}
      sizes = [math.prod(rows) for rows in own.values()]
      memory = torch.zeros(shape[0], sum(sizes), dtype=kind, device=device)
      one = memory if shape[0] == 1 else torch.zeros_like(memory[:1])
      pieces = zip(own.items(), memory.split(sizes, 1), one.split(sizes, 1), strict=True)
      for (name, rows), many, single in pieces:
        self.all[name], self.present[name] = many.unflatten(1, rows), single.view(rows)
      if one is not memory:
        self._moves.append((memory, one))

  def advance(self, turn: Tensor) -> None:
    """Make the batch of an index [1] the present one."""
    for memory, one in self._moves:
      torch.index_select(memory, 0, turn, out=one)


class Batch:
  """The present batch [n] of a gradient step, in static memory, and those drawn with it.

  A batch has few numbers, and the calls that draw one take as long as those that draw many.
  """

  def __init__(self, env: VecEnv, network: Actor, noises: Sequence[str], shape: tuple[int, int]) -> None:
    """Allocate shape[0] batches of shape[1] transitions, with normal numbers for each purpose in `noises`."""
    seen: dict[str, Part] = {group: (network.input_dtype, (width,)) for group, width in env.obs_dims.items()}
    seen |= {name: (own.dtype, own.shape) for name, own in images_of(env).items()}
    self._noises = [*noises]
    wide: Part = (network.dtype, (env.num_actions,))
    parts = {"action": wide} | dict.fromkeys(NUMBERS, (network.dtype, ()))
    parts |= {f"noise {purpose}": wide for purpose in noises}
    parts |= {f"{when} {name}": kind for when in ("before", "after") for name, kind in seen.items()}
    self._parts = _Parts(shape, parts, env.device)
    self._turn = torch.zeros(1, dtype=torch.int64, device=env.device)  # index of the next batch
    present = self._parts.present
    # Groups, normalised [n, width], and images: before the first step, and after the last one.
    self.obs = {name: present[f"before {name}"] for name in seen}
    self.next_obs = {name: present[f"after {name}"] for name in seen}
    self.noise = {purpose: present[f"noise {purpose}"] for purpose in noises}  # [n, num_actions]
    self.action = present["action"]  # [n, num_actions]
    # [n] each: transformed rewards of the steps, factor of the value after them, weight: 1, or 0 if invalid,
    # age, and the weight of the critics' loss, which undoes the bias of the draw.
    self.reward, self.discount = present["reward"], present["discount"]
    self.weight, self.age, self.importance = present["weight"], present["age"], present["importance"]
    self.return_ = torch.zeros_like(self.reward)  # what the critics learn [n], once it is known

  def fill(
    self, draw: Draw, drawn: Transitions, noise: Mapping[str, Tensor], observations: ObservationNormalizer
  ) -> None:
    """Take drawn transitions [shape[0] * n] in, with their noise by purpose, batch after batch."""
    parts = {"action": drawn.action, "reward": drawn.reward, "discount": drawn.discount}
    parts |= {"weight": drawn.weight, "importance": drawn.weight * draw.weight, "age": draw.age}
    parts |= {f"noise {purpose}": noise[purpose] for purpose in self._noises}
    for when, raw in (("before", drawn.obs), ("after", drawn.next_obs)):
      parts |= {f"{when} {name}": part for name, part in observations(raw).items()}
    for name, memory in self._parts.all.items():
      memory.copy_(parts[name].view(memory.shape))
    self._turn.zero_()

  def samples(self) -> TensorDict:
    """Return the present batch as a TensorDict [n], with what the critics learn as `return_`."""
    names = ("action", "reward", "discount", "weight", "return_")
    own = {name: getattr(self, name) for name in names}
    return TensorDict({"obs": TensorDict(dict(self.obs), self.weight.shape), **own}, self.weight.shape)

  def advance(self) -> None:
    """Make the next of the drawn batches the present one."""
    self._parts.advance(self._turn)
    self._turn += 1
