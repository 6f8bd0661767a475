"""Finding of a comparison: the errors of one quantity, and their bounds."""

import dataclasses

import numpy as np

from physics.model.model import Bools, Floats


@dataclasses.dataclass(frozen=True)
class Finding:
  """The comparison of one quantity: errors and their bounds, one per state (or per time of a rollout)."""

  quantity: str
  error: Floats
  bound: Floats
  median: float = np.inf  # bound of the median error

  def at(self, states: Bools) -> "Finding":
    """Return the finding restricted to some of the states [num_states]; as it is if none is left."""
    if not states.any():
      return self
    return dataclasses.replace(self, error=self.error[states], bound=self.bound[states])

  @property
  def worst(self) -> int:
    """The state with the largest ratio of error to bound."""
    error = np.where(np.isinf(self.bound), 0.0, self.error)
    return int(np.argmax(np.nan_to_num(error, nan=np.inf) / np.maximum(self.bound, 1e-300)))

  @property
  def holds(self) -> bool:
    """Whether every error and the median are within their bounds; an error of nan never is."""
    return bool((self.error <= self.bound).all() and np.median(self.error) <= self.median)

  def __str__(self) -> str:
    i, median = self.worst, float(np.median(self.error))
    worst = f"{self.error[i]:.1e} in state {i}, allowed {self.bound[i]:.1e}"
    return f"{self.quantity}: {worst}; median {median:.1e}, allowed {self.median:.1e}"
