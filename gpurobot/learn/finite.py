"""Check that the observations and rewards of samples are finite."""

from collections.abc import Mapping

import torch
from torch import Tensor

from gpurobot.learn.env import VecEnv, images_of

WIDEST = 2**20  # columns of an observation group: more than any has


class FiniteCheck:
  """Finds environments with numbers that are nan or infinite, counts them, and notes their columns.

  `count` [1]: samples left out so far although the environment had called them valid.
  """

  def __init__(self, env: VecEnv, first_env: int) -> None:
    """Check environments; first_env: the global index of the first."""
    self._first_env = first_env
    self.count = torch.zeros(1, dtype=torch.int64, device=env.device)
    self._envs = torch.zeros(env.num_envs, dtype=torch.bool, device=env.device)  # found so far
    widths = _widths(env)
    self._columns = {name: self._envs.new_zeros(width) for name, width in widths.items()}

  def rows(self, obs: Mapping[str, Tensor]) -> Tensor:
    """Return where all observations [n, ...] of an environment are finite, [n] bool."""
    parts = [x for x in obs.values() if x.is_floating_point()]
    return torch.stack([_columns_of(x).sum(1) for x in parts]).sum(0).isfinite()

  def note(self, obs: Mapping[str, Tensor], finite: Tensor) -> None:
    """Note environments and columns of observations [n, width] whose `rows` are not all finite."""
    self._envs |= ~finite
    for name, found in self._columns.items():
      found.logical_or_(~_columns_of(obs[name]).sum(0).isfinite())

  def transition(self, reported_finite: Tensor, *finite: Tensor) -> Tensor:
    """Return where a step [n] is valid: the environment claims it, and all of `finite` [n] hold."""
    valid = reported_finite
    for part in finite:
      valid = valid & part
    self.count += (reported_finite ^ valid).sum()
    return valid

  @property
  def source(self) -> Tensor:
    """The first environment, group and column noted, as one number [1], see `describe`; -1: none."""
    env = self._first_env + self._envs.to(torch.uint8).argmax()
    source = torch.full_like(self.count, -1)
    for index, found in reversed([*enumerate(self._columns.values())]):
      code = (env * len(self._columns) + index) * WIDEST + found.to(torch.uint8).argmax()
      source = torch.where(found.any(), code, source)
    return source


def _columns_of(x: Tensor) -> Tensor:
  """Return observations [n, width] as they are, and of images [n, ...] the sums [n, 1]."""
  return x if x.ndim == 2 else x.flatten(1).sum(1, keepdim=True, dtype=torch.float32)


def _widths(env: VecEnv) -> dict[str, int]:
  """Return the columns that are reported apart, by group; an image counts as one column."""
  groups = {group: width for group, width in env.obs_dims.items() if width}
  images = [name for name, image in images_of(env).items() if image.dtype.is_floating_point]
  return groups | dict.fromkeys(images, 1)


def describe(source: int, env: VecEnv) -> str:
  """Say which observation `FiniteCheck.source` is: column, group, and environment by its global index."""
  rest, column = divmod(source, WIDEST)
  names, widths = env.obs_names, _widths(env)
  index, group = divmod(rest, len(widths))
  name = list(widths)[group]
  if name not in env.obs_dims:
    return f"the image '{name}' in environment {index}"
  part = f"block '{names[name][column]}'" if names else f"column {column}"
  return f"{part} of the group '{name}' in environment {index}"
