"""Statistics of a training: sums and extremes, gathered on the device from one report to the next."""

from collections.abc import Mapping

import torch
from tensordict import TensorDictBase
from torch import Tensor

from gpurobot.device.distributed import World
from gpurobot.learn.loss import SUMS

RANGES = ("obs", "reward")  # whose least and greatest numbers are told


class Episodes:
  """Raw returns and lengths: of running episodes, and summed over those ended since the last `restart`."""

  def __init__(self, local_envs: int, device: torch.device) -> None:
    self.running = torch.zeros(2, local_envs, device=device)  # return, length [steps]
    # Over ended episodes: their number, and the sums of return, length and successes.
    self.sums = torch.zeros(4, dtype=torch.float64, device=device)

  def add(self, reward: Tensor, ended: Tensor, valid: Tensor, success: Tensor) -> None:
    """Count one step of each environment; an episode that ends with an invalid step is dropped."""
    self.running[0] += torch.where(valid, reward, 0)
    self.running[1] += 1
    rows = torch.stack([torch.ones_like(reward), *self.running, success.to(reward.dtype)])
    self.sums += rows.to(torch.float64) @ (ended & valid).to(torch.float64)
    self.running.masked_fill_(ended | ~valid, 0)

  def restart(self) -> None:
    """Begin new sums."""
    self.sums.zero_()


class Means:
  """Sums of named quantities [n] over all that was added since the last `restart`; the first names them."""

  def __init__(self, device: torch.device) -> None:
    self.names: list[str] = []
    self.sums = torch.zeros(1, dtype=torch.float64, device=device)  # weight, then one sum for each name

  def add(self, values: Mapping[str, Tensor], weight: Tensor) -> None:
    """Add quantities [n] where the weight [n] bool is true."""
    if not self.names:
      self.names = list(values)
      self.sums = self.sums.new_zeros(1 + len(values))
    rows = torch.stack([torch.ones_like(weight, dtype=torch.float32), *values.values()])
    self.sums += torch.where(weight, rows, 0).sum(1)

  def means(self) -> dict[str, Tensor]:
    """Return the mean of each quantity, nan where nothing was added."""
    return dict(zip(self.names, self.sums[1:] / self.sums[0], strict=True))

  def restart(self) -> None:
    """Begin new sums."""
    self.sums.zero_()


class Extremes:
  """The least and the greatest number of `count` tensors since the last `restart`."""

  def __init__(self, count: int, device: torch.device) -> None:
    self.values = torch.empty(count, 2, device=device)  # of -x and of x: both are maxima
    self.restart()

  def add(self, row: int, tensor: Tensor) -> None:
    """Look at one of the tensors; what is not a number is passed over."""
    extremes = torch.stack([-tensor.amin(), tensor.amax()]).to(self.values.dtype)
    self.values[row] = torch.fmax(self.values[row], extremes)

  def restart(self) -> None:
    """Begin anew."""
    self.values.fill_(-torch.inf)


class Statistics:
  """All that is told of a training between two reports."""

  def __init__(self, local_envs: int, device: torch.device) -> None:
    self.episodes = Episodes(local_envs, device)
    self.step_means, self.update_means = Means(device), Means(device)
    self.ranges, self.norms = Extremes(len(RANGES), device), Extremes(1, device)
    self._loss = torch.zeros(len(SUMS), dtype=torch.float64, device=device)  # over all ranks
    self._norms = torch.zeros(2, dtype=torch.float64, device=device)  # number and sum of the gradients' norms
    self._always = torch.ones(1, dtype=torch.bool, device=device)
    self._has_success = False

  def add_step(self, step: TensorDictBase) -> None:
    """Add one step of each environment."""
    valid, reward = step["valid"], step["reward"]
    success = step.get("success", None)
    self._has_success = success is not None
    ended = step["terminated"] | step["truncated"]
    self.episodes.add(reward, ended, valid, torch.zeros_like(ended) if success is None else success)
    terms = {f"reward/{name}": term for name, term in step["reward_terms"].items()}
    self.step_means.add(terms | dict(step["metrics"].items()), valid)
    self.ranges.add(RANGES.index("reward"), reward)

  def add_minibatch(self, sums: Tensor, norm: Tensor) -> None:
    """Add `loss`'s sums over all ranks and the gradient's norm, both 0 where the step was skipped."""
    self._loss += sums
    self._norms += torch.cat([(sums[:1] > 0).to(norm.dtype), norm.view(1)])
    self.norms.add(0, norm)

  def add_update(self, obs: Tensor, values: Mapping[str, Tensor]) -> None:
    """Add what the policy's group observes after a rollout, and scalars of one iteration.

    The last observations stand for all: to look at every one would take 1 % of an iteration.
    """
    self.ranges.add(RANGES.index("obs"), obs)
    self.update_means.add({name: value.view(1) for name, value in values.items()}, self._always)

  def report(self, world: World, counters: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Return all since the last report, and counters since the start, over all ranks; every rank calls."""
    counts = [count.to(torch.float64).view(1) for count in counters.values()]
    world.sum_all_([self.episodes.sums, self.step_means.sums, self.update_means.sums, *counts])
    world.max_(self.ranges.values)
    ended, return_, length, success = self.episodes.sums.unbind()
    values = {
      "return": return_ / ended,
      "length": length / ended,
      "episodes": ended.clone(),
    }  # nan where none
    values["success"] = success / ended if self._has_success else torch.full_like(ended, torch.nan)
    weight, *parts = self._loss.unbind()
    values |= {name: part / weight for name, part in zip(SUMS[1:], parts, strict=True)}
    values |= {
      "gradient_norm": self._norms[1] / self._norms[0],
      "gradient_norm_max": self.norms.values[0, 1].clone(),
    }
    for name, (low, high) in zip(RANGES, self.ranges.values.clone(), strict=True):
      values |= {f"{name}/min": -low, f"{name}/max": high}
    values |= self.update_means.means() | self.step_means.means()
    values |= dict(zip(counters, counts, strict=True))
    self._restart()
    return values

  def _restart(self) -> None:
    for part in (self.episodes, self.step_means, self.update_means, self.ranges, self.norms):
      part.restart()
    self._loss.zero_()
    self._norms.zero_()
