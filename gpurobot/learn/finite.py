"""The check of observations and rewards: a sample counts only where all its numbers are finite."""

from collections.abc import Mapping

import torch
from torch import Tensor

from gpurobot.learn.env import VecEnv

WIDEST = 2**20  # columns of an observation group: more than any has


class FiniteCheck:
  """Finds environments whose numbers are nan or infinite, counts them, and notes the first one's observation.

  `count` [1]: samples left out so far although the environment had called them valid. `source` [1]: the
  environment, group and column of the first such observation as one number, see `describe`; -1: none so far.
  """

  def __init__(self, env: VecEnv, first_env: int) -> None:
    """Check environments of which the first has the global index `first_env`."""
    self._first_env = first_env
    self.count = torch.zeros(1, dtype=torch.int64, device=env.device)
    self.source = torch.full((1,), -1, dtype=torch.int64, device=env.device)

  def observations(self, obs: Mapping[str, Tensor]) -> Tensor:
    """Return where all observations [n, width] of an environment are finite, [n] bool."""
    finite = [x.sum(1).isfinite() for x in obs.values()]
    for index, (x, own) in enumerate(zip(obs.values(), finite, strict=True)):
      env = (~own).to(torch.uint8).argmax().view(1)
      column = (~x.index_select(0, env).isfinite()).to(torch.uint8).argmax()
      code = ((self._first_env + env) * len(finite) + index) * WIDEST + column
      self.source.copy_(torch.where((self.source < 0) & ~own.all(), code, self.source))
    return torch.stack(finite).all(0)

  def transition(self, claimed: Tensor, *finite: Tensor) -> Tensor:
    """Return where a step [n] is valid: the environment claims it, and all of `finite` [n] hold."""
    valid = torch.stack([claimed, *finite]).all(0)
    self.count += (claimed & ~valid).sum()
    return valid


def describe(source: int, env: VecEnv) -> str:
  """Say which observation `FiniteCheck.source` is: column, group, and environment by its global index."""
  rest, column = divmod(source, WIDEST)
  index, group = divmod(rest, len(env.obs_dims))
  name = list(env.obs_dims)[group]
  blocks: Mapping[str, list[str]] = getattr(
    env, "obs_names", {}
  )  # of each column, where the environment says
  part = f"block '{blocks[name][column]}'" if blocks else f"column {column}"
  return f"{part} of the group '{name}' in environment {index}"
