"""Batches of an off-policy algorithm: drawn several at once, learnt from one by one."""

from collections.abc import Mapping, Sequence

import torch
from tensordict import TensorDict
from torch import Tensor

from gpurobot.learn.env import VecEnv, images_of
from gpurobot.learn.network import Actor
from gpurobot.learn.normalize import ObservationNormalizer
from gpurobot.learn.replay_buffer import Draw, Transitions


class Batch:
  """The present batch [n] of a gradient step, in static memory, and those drawn with it.

  A batch has few numbers, and the calls that draw one take as long as those that draw many.
  """

  def __init__(self, env: VecEnv, network: Actor, noises: Sequence[str], shape: tuple[int, int]) -> None:
    """Allocate shape[0] batches of shape[1] transitions, with normal numbers for each purpose in `noises`."""

    def numbers(*width: int, kind: torch.dtype = network.dtype) -> Tensor:
      return torch.zeros(*shape, *width, dtype=kind, device=env.device)

    def observations() -> dict[str, Tensor]:
      groups = {group: numbers(width, kind=network.input_dtype) for group, width in env.obs_dims.items()}
      return groups | {name: numbers(*own.shape, kind=own.dtype) for name, own in images_of(env).items()}

    self._obs, self._next_obs = observations(), observations()
    self._noise = {purpose: numbers(env.num_actions) for purpose in noises}
    names = ("reward", "discount", "weight", "age")
    self._numbers = {"action": numbers(env.num_actions), **{name: numbers() for name in names}}
    self._turn = torch.zeros(1, dtype=torch.int64, device=env.device)  # index of the next batch
    self._moves: list[tuple[Tensor, Tensor]] = []  # all batches [shape[0], n, ...], the present one [n, ...]
    # Groups, normalised [n, width], and images: before the first step, and after the last one.
    self.obs, self.next_obs = self._present(self._obs), self._present(self._next_obs)
    self.noise = self._present(self._noise)  # by purpose [n, num_actions]
    present = self._present(self._numbers)
    self.action = present["action"]  # [n, num_actions]
    # [n] each: transformed rewards of the steps, factor of the value after them, weight of the losses, age.
    self.reward, self.discount, self.weight, self.age = (present[name] for name in names)
    self.return_ = torch.zeros_like(self.reward)  # what the critics learn [n], once it is known

  def _present(self, drawn: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Return memory for the present batch of those drawn; of a single one it is the same memory."""
    found = {name: memory[0] if len(memory) == 1 else memory[0].clone() for name, memory in drawn.items()}
    self._moves += [(drawn[name], part) for name, part in found.items() if len(drawn[name]) > 1]
    return found

  def fill(
    self, draw: Draw, drawn: Transitions, noise: Mapping[str, Tensor], observations: ObservationNormalizer
  ) -> None:
    """Take drawn transitions [shape[0] * n] in, with their noise by purpose, batch after batch."""
    for raw, memory in ((drawn.obs, self._obs), (drawn.next_obs, self._next_obs)):
      observations.write(raw, {group: part.flatten(0, 1) for group, part in memory.items()})
    weight = drawn.weight * draw.weight
    parts = {"action": drawn.action, "reward": drawn.reward, "discount": drawn.discount}
    for name, part in (parts | {"weight": weight, "age": draw.age}).items():
      self._numbers[name].flatten(0, 1).copy_(part)
    for purpose, numbers in self._noise.items():
      numbers.flatten(0, 1).copy_(noise[purpose])
    self._turn.zero_()

  def samples(self) -> TensorDict:
    """Return the present batch as a TensorDict [n], with what the critics learn as `return_`."""
    names = ("action", "reward", "discount", "weight", "return_")
    own = {name: getattr(self, name) for name in names}
    return TensorDict({"obs": TensorDict(dict(self.obs), self.weight.shape), **own}, self.weight.shape)

  def advance(self) -> None:
    """Make the next of the drawn batches the present one."""
    for drawn, present in self._moves:
      present.copy_(drawn.index_select(0, self._turn).squeeze(0))
    self._turn += 1
