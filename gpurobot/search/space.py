"""Space of settings: the values to try of each key, and the draws of a grid, random or Sobol search."""

import dataclasses
import itertools
import math
import re
from collections.abc import Iterator, Mapping
from enum import StrEnum
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch.quasirandom import SobolEngine

from gpurobot.settings.config import ConfigError, Leaf, check_range
from gpurobot.settings.values import expected, fitting

LOG = "log:"  # prefix of a log-uniform range
DIGITS = 4  # of the numbers that are drawn from a range
FACTORS = (0.8, 1.2)  # of a perturbed number (Jaderberg et al. 2017, arXiv 1711.09846)
STEP = 0.2  # of a number in a uniform range, as a share of the range: 1.2 gamma would be its end


class Search(StrEnum):
  """Method that chooses the settings of the trials."""

  grid = "grid"
  random = "random"
  sobol = "sobol"
  pbt = "pbt"


@dataclasses.dataclass(frozen=True)
class Choices:
  """Values to choose from, as words."""

  words: tuple[str, ...]

  def at(self, unit: float) -> str:
    """Return the word for a number in [0, 1)."""
    return self.words[int(unit * len(self.words))]


@dataclasses.dataclass(frozen=True)
class Range:
  """Numbers between two ends, both included; uniform or log-uniform."""

  low: float
  high: float
  log: bool
  whole: bool  # only whole numbers

  def at(self, unit: float) -> str:
    """Return the word for a number in [0, 1)."""
    low, high = (self.low - 0.5, self.high + 0.5) if self.whole else (self.low, self.high)
    if self.log:
      return self.word(math.exp(math.log(low) + unit * (math.log(high) - math.log(low))))
    return self.word(low + unit * (high - low))

  def perturbed(self, word: str, up: bool) -> str:
    """Return the word for a number that is smaller or larger, within the range.

    It is a fifth of itself away if the range is logarithmic, otherwise a fifth of the range.
    """
    if self.log:
      return self.word(float(word) * FACTORS[up])
    return self.word(float(word) + (STEP if up else -STEP) * (self.high - self.low))

  def word(self, number: float) -> str:
    """Return a number within the range as a word."""
    near = round(number) if self.whole else float(f"{number:.{DIGITS}g}")
    near = min(max(near, self.low), self.high)
    return str(int(near)) if self.whole else f"{near:g}"


Space = Mapping[str, Choices | Range]


def parse(key: str, text: str, leaf: Leaf) -> Choices | Range:
  """Return the choices for a key: values separated by commas, or low..high, or log:low..high.

  Commas within brackets do not separate. Raises ConfigError unless the setting accepts the numbers of a
  range.
  """
  if ".." not in text or "/" in text:  # a path may have dots
    return Choices(tuple(dict.fromkeys(re.split(r",(?![^\[]*\])", text))))
  log, ends = text.startswith(LOG), text.removeprefix(LOG).split("..")
  numbers = [_number(key, end, leaf) for end in ends]
  if len(numbers) != 2 or numbers[0] >= numbers[1]:
    raise ConfigError(f"{key}={text} is no range; write {key}=<low>..<high> or {key}={LOG}<low>..<high>")
  if log and numbers[0] <= 0:
    raise ConfigError(f"{key}={text}: a logarithm needs positive numbers; write {key}={ends[0]}..{ends[1]}")
  return Range(numbers[0], numbers[1], log, whole=all(isinstance(number, int) for number in numbers))


def _number(key: str, word: str, leaf: Leaf) -> float:
  """Return an end of a range; raise ConfigError if the setting does not accept it."""
  try:
    value: Any = fitting(word, leaf.kind)
  except Exception as error:  # `fitting` raises many types
    raise ConfigError(f"{key}={word} is not {expected(leaf.kind, word)}") from error
  if isinstance(value, bool) or not isinstance(value, int | float):
    raise ConfigError(f"{key} has no range: its values are no numbers; write them with commas between")
  check_range(key, value, leaf)  # a population may come to the end of a range after hours
  return value


def grid(space: Space) -> Iterator[dict[str, str]]:
  """Yield every combination of values by key; raise ConfigError if the space has a range."""
  options: list[tuple[str, ...]] = []
  for key, values in space.items():
    if isinstance(values, Range):
      raise ConfigError(f"{key} has a range, and a grid needs values; write search=random, sobol or pbt")
    options.append(values.words)
  return (dict(zip(space, chosen, strict=True)) for chosen in itertools.product(*options))


def draw(space: Space, search: Search, samples: int, seed: int) -> list[dict[str, str]]:
  """Return `samples` settings by key, without duplicates, drawn at random or from a scrambled Sobol sequence.

  A Sobol sequence fills the space more evenly (Sobol 1967; scrambled by Owen 1998). Raises ConfigError if
  there is nothing to choose.
  """
  varying = [key for key, values in space.items() if isinstance(values, Range) or len(values.words) > 1]
  if not varying:
    raise ConfigError(
      f"search={search} needs a setting with several values or a range, such as ppo.gamma=0.9..0.99"
    )
  units: NDArray[np.float64]
  if search is Search.random:
    units = np.random.default_rng(seed).random((samples, len(varying)))
  else:
    units = SobolEngine(len(varying), scramble=True, seed=seed).draw(samples, dtype=torch.float64).numpy()
  fixed = {key: values.at(0.0) for key, values in space.items() if key not in varying}
  found = [
    fixed | {key: space[key].at(float(u)) for key, u in zip(varying, row, strict=True)} for row in units
  ]
  return [dict(items) for items in dict.fromkeys(tuple(sorted(one.items())) for one in found)]
