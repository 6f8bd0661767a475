"""Training statistics: sums and extremes, accumulated on the device between two reports."""

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import torch
from tensordict import TensorDictBase
from torch import Tensor

from gpurobot.device.distributed import World

RANGES = ("obs", "reward")  # tensors whose minimum and maximum are reported


class Accumulator:
  """What is summed up from one report to the next; checkpoints keep it, as they may lie between the two."""

  kept: ClassVar[Mapping[str, float]]  # its tensors by attribute, and what they start from

  def restart(self) -> None:
    """Reset the tensors."""
    for name, start in self.kept.items():
      getattr(self, name).fill_(start)

  def state_dict(self) -> dict[str, Any]:
    """Return the tensors by name."""
    return {name: getattr(self, name) for name in self.kept}

  def load_state_dict(self, state: Mapping[str, Any]) -> None:
    """Continue from a saved state; what it lacks, or what another version counted, starts anew."""
    self.restart()
    for name in self.kept:
      own, saved = getattr(self, name), state.get(name)
      if saved is not None and saved.shape == own.shape:
        own.copy_(saved)


class Episodes(Accumulator):
  """Raw returns and lengths, of running episodes and summed over those ended since the last `restart`.

  The first episode of each environment is left out: in training it starts at a random age.
  Episodes of marked environments are also summed apart, those that a teacher drives only apart.
  """

  kept: ClassVar = {"sums": 0, "marked_sums": 0}

  def __init__(self, local_envs: int, device: torch.device) -> None:
    self.running = torch.zeros(2, local_envs, device=device)  # return and length [steps] so far
    self.whole = torch.zeros(local_envs, dtype=torch.bool, device=device)  # the running episode counts
    # Over ended episodes: their number, and the sums of return, length and successes [4].
    self.sums = torch.zeros(4, dtype=torch.float64, device=device)
    self.marked: dict[str, Tensor] = {}  # [local_envs] bool: "greedy" ones; "teacher": it drives
    self.marked_sums = torch.zeros_like(self.sums)

  def add(self, reward: Tensor, ended: Tensor, valid: Tensor, success: Tensor) -> None:
    """Add one step of each environment, [local_envs] each; an episode with an invalid step is dropped."""
    self.running[0] += torch.where(valid, reward, 0)
    self.running[1] += 1
    rows = torch.stack([torch.ones_like(reward), *self.running, success.to(reward.dtype)])
    rows, counted = rows.to(torch.float64), ended & valid & self.whole
    for marked in self.marked.values():
      self.marked_sums += rows @ (counted & marked).to(torch.float64)
    self.sums += rows @ self.own(counted).to(torch.float64)
    over = ended | ~valid
    self.running.masked_fill_(over, 0)
    self.whole |= over

  def own(self, mask: Tensor) -> Tensor:
    """Return the mask [local_envs] without the environments that a teacher drives."""
    return mask & ~self.marked["teacher"] if "teacher" in self.marked else mask

  def hand_over(self, taught: Tensor) -> None:
    """Set which environments [local_envs] bool a teacher drives; an episode of two drivers is not counted."""
    self.whole &= (taught == self.marked["teacher"]) | (self.running[1] == 0)
    self.marked["teacher"].copy_(taught)


class Means(Accumulator):
  """Means of named quantities over what was added since the last `restart`; the first `add` names them.

  `source` says in messages where the quantities come from.
  """

  kept: ClassVar = {"sums": 0}

  def __init__(self, source: str, device: torch.device) -> None:
    self.source, self.names = source, list[str]()
    self.sums = torch.zeros(1, dtype=torch.float64, device=device)  # weight, then one sum for each name
    self._saved: Mapping[str, Any] = {}  # the sums of a checkpoint, until the names are known

  def add(self, values: Mapping[str, Tensor], weight: Tensor) -> None:
    """Add quantities [n] by name where `weight` [n] bool is true; raise ValueError if the names change."""
    if not self.names:
      self.names = list(values)
      self.sums = self.sums.new_zeros(1 + len(values))
      self.load_state_dict(self._saved)
    if len(values) != len(self.names) or not all(name in values for name in self.names):
      changed = ", ".join(sorted({*values} ^ {*self.names}))
      raise ValueError(f"{self.source} are not the same in every step: {changed} came or went")
    rows = torch.stack([torch.ones_like(weight, dtype=torch.float32), *(values[name] for name in self.names)])
    self.sums += torch.where(weight, rows, 0).sum(1)

  def add_scalars(self, values: Mapping[str, Tensor]) -> None:
    """Add one scalar of each quantity by name."""
    always = torch.ones(1, dtype=torch.bool, device=self.sums.device)
    self.add({name: value.view(1) for name, value in values.items()}, always)

  def means(self) -> dict[str, Tensor]:
    """Return the mean of each quantity, a scalar by name; nan if nothing was added."""
    return dict(zip(self.names, self.sums[1:] / self.sums[0], strict=True))

  def state_dict(self) -> dict[str, Any]:
    """Return the sums and their names."""
    return {"names": self.names, **super().state_dict()} if self.names else dict(self._saved)

  def load_state_dict(self, state: Mapping[str, Any]) -> None:
    """Continue from saved sums, if they have the same names."""
    self._saved = {} if self.names else state
    super().load_state_dict(state if state.get("names") == self.names else {})


class Extremes(Accumulator):
  """Minimum and maximum of `count` tensors since the last `restart`."""

  kept: ClassVar = {"values": -torch.inf}

  def __init__(self, count: int, device: torch.device) -> None:
    self.values = torch.empty(count, 2, device=device)  # maxima of -x and of x
    self.restart()

  def add(self, row: int, tensor: Tensor) -> None:
    """Add a tensor [...] to the extremes of index `row`; if it has a nan, nothing changes."""
    extremes = torch.stack([-tensor.amin(), tensor.amax()]).to(self.values.dtype)
    self.values[row] = torch.fmax(self.values[row], extremes)

  def ends(self) -> tuple[Tensor, Tensor]:
    """Return the smallest and the largest number of each tensor [count]; nan if nothing was added."""
    none = (self.values == -torch.inf).all(1)
    found = self.values.masked_fill(none.unsqueeze(1), torch.nan)
    return -found[:, 0], found[:, 1]


class LossMeans(Accumulator):
  """Means of a loss's parts over samples, and of its gradient's norm over optimiser steps."""

  kept: ClassVar = {"_sums": 0, "_norm": 0, "_steps": 0, "_largest": -torch.inf}

  def __init__(self, names: Sequence[str], device: torch.device) -> None:
    """Start at 0. names: of the sums over samples; the first sum is the weight."""
    self.names = names[1:]
    self._sums = torch.zeros(len(names), dtype=torch.float64, device=device)  # over all ranks
    self._norm = torch.zeros(1, dtype=torch.float64, device=device)  # sum of the gradient norms
    self._steps = torch.zeros_like(self._norm)  # number of them
    self._largest = torch.full((1,), -torch.inf, device=device)

  def add(self, sums: Tensor, norm: Tensor) -> None:
    """Add the sums [len(names)] over all ranks and the gradient norm [1] of a step; 0 if it was skipped."""
    self._sums += sums
    self._norm += norm
    self._steps += sums[:1] > 0
    torch.fmax(self._largest, norm, out=self._largest)

  def report(self) -> dict[str, Tensor]:
    """Return the means since the last report, scalars by name; they are nan if nothing was added."""
    weight, *parts = self._sums.clone().unbind()
    values = {name: part / weight for name, part in zip(self.names, parts, strict=True)}
    values["gradient_norm"] = (self._norm / self._steps)[0]
    values["gradient_norm_max"] = self._largest[0].clone()
    self.restart()
    return values


class Statistics:
  """All statistics of training between two reports."""

  def __init__(self, local_envs: int, device: torch.device) -> None:
    self.episodes = Episodes(local_envs, device)
    self.step_means = Means("the reward terms and metrics of the environments", device)
    self.ranges = Extremes(len(RANGES), device)
    self._has_success: bool | None = None  # unknown before the first step
    # All that a report is made of, by name; a learner adds its own.
    self.parts: dict[str, Accumulator] = {"episodes": self.episodes, "steps": self.step_means}
    self.parts["ranges"] = self.ranges

  def add_step(self, step: TensorDictBase, valid: Tensor) -> None:
    """Add the entries of `VecEnv.step`, [local_envs, ...] each, where `valid` [local_envs] is true."""
    reward = step["reward"]
    success = step.get("success", None)
    if self._has_success not in (None, success is not None):
      raise ValueError("the environments say of some steps, but not of all, whether an episode succeeded")
    self._has_success = success is not None
    ended = step["terminated"] | step["truncated"]
    self.episodes.add(reward, ended, valid, torch.zeros_like(ended) if success is None else success)
    terms = {f"reward/{name}": term for name, term in step["reward_terms"].items()}
    self.step_means.add(terms | dict(step["metrics"].items()), self.episodes.own(valid))
    self.ranges.add(RANGES.index("reward"), reward)

  def add_obs(self, obs: Tensor) -> None:
    """Add the last observations [local_envs, width] of a rollout; all would take 1 % of an iteration."""
    if obs.shape[1]:  # of images alone there are none
      self.ranges.add(RANGES.index("obs"), obs)

  def report(
    self, world: World, counters: Mapping[str, Tensor], measures: Sequence[Means] = ()
  ) -> dict[str, Tensor]:
    """Return the statistics since the last report and the counters, scalars by name, over all ranks.

    Every rank calls. The statistics and the means of `measures` are reset; the counters are since the start.
    """
    counts = [count.to(torch.float64).view(1) for count in counters.values()]
    means = [self.step_means, *measures]
    episodes = self.episodes
    world.sum_all_([episodes.sums, episodes.marked_sums, *(own.sums for own in means), *counts])
    world.max_(self.ranges.values)
    ended, return_, length, success = episodes.sums.unbind()
    # A mean is nan if no episode ended.
    values = {"return": return_ / ended, "length": length / ended, "episodes": ended.clone()}
    values["success"] = success / ended if self._has_success else torch.full_like(ended, torch.nan)
    for name in episodes.marked:
      values[f"{name}_return"] = episodes.marked_sums[1] / episodes.marked_sums[0]
    for name, low, high in zip(RANGES, *self.ranges.ends(), strict=True):
      values |= {f"{name}/min": low, f"{name}/max": high}
    for own in reversed(means):
      values |= own.means()
    values |= dict(zip(counters, counts, strict=True))
    for part in (episodes, self.ranges, *means):
      part.restart()
    return values

  def state_dict(self) -> dict[str, Any]:
    """Return what was added since the last report: this rank's part of the state."""
    return {"statistics": {name: own.state_dict() for name, own in self.parts.items()}}

  def load_state_dict(self, state: Mapping[str, Any]) -> None:
    """Continue from this rank's part of a saved state; older checkpoints have no statistics."""
    for name, part in self.parts.items():
      part.load_state_dict(state.get("statistics", {}).get(name, {}))
