"""Prioritised draws from a replay buffer, by sum trees (Schaul et al. 2016, arXiv 1511.05952)."""

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor

from gpurobot.learn.random import Random
from gpurobot.learn.replay_buffer import WORD, Draw, Replay, ReplaySampler

LEAST = 1e-3  # added to errors, so that each transition has a chance


class SumTree:
  """Binary trees [trees, 2 * width]; each node holds the sum of its leaves.

  The root is node 1, the children of node i are 2 i and 2 i + 1, and the leaves begin at `width`. All
  operations take O(log(leaves)) for each number, without a branch.
  """

  def __init__(self, trees: int, leaves: int, device: torch.device) -> None:
    """Allocate trees with leaves of 0."""
    self.leaves, self.depth = leaves, (leaves - 1).bit_length()
    self.width = 1 << self.depth
    self.nodes = torch.zeros(trees, 2 * self.width, dtype=torch.float64, device=device)

  @property
  def total(self) -> Tensor:
    """The sum of all leaves [trees, 1]."""
    return self.nodes[:, 1:2]

  def at(self, leaf: Tensor) -> Tensor:
    """Return the values [trees, n] of leaves [trees, n]."""
    return self.nodes.gather(1, leaf + self.width)

  def write(self, leaf: Tensor, value: Tensor) -> None:
    """Set leaves [trees, n] to values [trees, n]; of several for the same leaf the largest counts."""
    node = leaf + self.width
    self.nodes.scatter_reduce_(1, node, value, "amax", include_self=False)
    for _ in range(self.depth):
      node = node >> 1
      self.nodes.scatter_(1, node, self.nodes.gather(1, 2 * node) + self.nodes.gather(1, 2 * node + 1))

  def find(self, mass: Tensor) -> Tensor:
    """Return the leaves [trees, n] in which the running sum of all leaves crosses mass [trees, n].

    A leaf of 0 is never found, unless all are.
    """
    node = torch.ones_like(mass, dtype=torch.int64)
    for _ in range(self.depth):
      left = self.nodes.gather(1, 2 * node)
      right = (mass >= left) & (self.nodes.gather(1, 2 * node + 1) > 0)
      mass = mass - torch.where(right, left, 0)
      node = 2 * node + right
    return node - self.width

  def fill(self, values: Tensor) -> None:
    """Set all leaves to values [trees, leaves]."""
    self.nodes[:, self.width : self.width + self.leaves] = values
    for level in reversed(range(self.depth)):
      first = 1 << level
      pairs = self.nodes[:, 2 * first : 4 * first].unflatten(1, (first, 2))
      self.nodes[:, first : 2 * first] = pairs[..., 0] + pairs[..., 1]


class PrioritizedSampler(ReplaySampler):
  """Sampler that draws a transition as often as its last error to the power of alpha is large.

  Each block of environments has a sum tree of its own, so that ranks need no word of each other. New
  transitions get the largest priority so far. The weights (n p)^-beta, of n transitions with probabilities p,
  undo the bias as far as beta says, which rises to 1.
  """

  def __init__(
    self, replay: Replay, count: int, n_step: int, random: Random, exponents: tuple[float, float, float]
  ) -> None:
    """Draw as `ReplaySampler` does; exponents: (alpha, first beta, draws until beta is 1)."""
    super().__init__(replay, count, n_step, random)
    self.alpha, self.first_beta, self.draws = exponents
    self.tree = SumTree(random.num_envs, replay.length * self.block, replay.device)
    self.largest = torch.ones_like(self.tree.total)  # priority [blocks, 1]
    self._drawn = torch.zeros(random.num_envs, self.per_block, dtype=torch.int64, device=replay.device)
    self._ages = torch.arange(1, n_step + replay.horizon + 1, device=replay.device)
    self._in_block = torch.arange(self.block, device=replay.device)

  @property
  def beta(self) -> Tensor:
    """The exponent of the weights of the present draw, a scalar."""
    done = (self.random.step.to(torch.float64) / self.draws).clamp(max=1)
    return self.first_beta + done * (1 - self.first_beta)

  def add(self) -> None:
    """Give the transitions that the last collection completed a priority, and none to those it began."""
    ages = self._ages
    known = (ages > self.n_step) & (ages <= self.replay.filled)
    rows = (self.replay.position - ages) % self.replay.length
    leaf = (rows[:, None] * self.block + self._in_block).flatten()  # [ages * block]
    value = known.repeat_interleave(self.block) * self.largest
    self.tree.write(leaf.expand(value.shape), value)

  def draw(self) -> Draw:
    """Return a batch of transitions, one from each of equal shares of the priorities of a block."""
    self.random.advance()
    word = self.random.bits("replay.priority", (self.per_block,)).to(torch.int64) & (WORD - 1)
    share = torch.arange(self.per_block, device=word.device) + word.to(torch.float64) / WORD
    leaf = self.tree.find(share / self.per_block * self.tree.total)
    self._drawn.copy_(leaf)
    count = ((self.replay.filled - self.n_step) * self.block).clamp(min=1)
    weight = (count * self.tree.at(leaf) / self.tree.total) ** -self.beta
    rows, envs = leaf // self.block, self._first + leaf % self.block
    age = (self.replay.position - rows - 1) % self.replay.length + 1
    return Draw(rows.flatten(), envs.flatten(), age.flatten(), weight.flatten())

  def learn(self, error: Tensor) -> None:
    """Give the transitions of the last draw priorities by their errors [count], where these are finite."""
    error = error.detach().to(torch.float64).view_as(self._drawn).abs()
    value = torch.where(error.isfinite(), (error + LEAST) ** self.alpha, self.tree.at(self._drawn))
    self.largest.copy_(torch.maximum(self.largest, value.amax(1, keepdim=True)))
    self.tree.write(self._drawn, value)

  def clear(self) -> None:
    """Forget all priorities."""
    self.tree.nodes.zero_()
    self.largest.fill_(1)

  def state_dict(self) -> dict[str, Any]:
    """Return the priorities [blocks, leaves], and the largest so far."""
    leaves = self.tree.nodes[:, self.tree.width :][:, : self.tree.leaves]
    return {"priority": leaves, "largest": self.largest}

  def load_state_dict(self, state: Mapping[str, Any]) -> None:
    """Continue from saved priorities."""
    self.tree.fill(state["priority"])
    self.largest.copy_(state["largest"])
