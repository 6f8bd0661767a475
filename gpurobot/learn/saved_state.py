"""State of objects by name, and its check against the state that it is loaded into."""

from collections.abc import Mapping, Sequence
from typing import Any

from tensordict import TensorDictBase
from torch import Tensor

# Objects with `state_dict` and `load_state_dict` by name, or groups of them.
Parts = Mapping[str, Any]


def state_of(parts: Parts) -> dict[str, Any]:
  """Return the states of parts by name."""
  return {
    name: state_of(part) if isinstance(part, Mapping) else part.state_dict() for name, part in parts.items()
  }


def load_state(parts: Parts, state: Mapping[str, Any]) -> None:
  """Load the states of parts by name; raise KeyError if one is missing."""
  for name, part in parts.items():
    if isinstance(part, Mapping):
      load_state(part, state[name])
    else:
      part.load_state_dict(state[name])


def check_saved(saved: Any, own: Any, *, finite: bool = True, name: str = "") -> None:
  """Raise ValueError if saved numbers have other types or shapes than one's own, or, if `finite`, are nan.

  Both are what `state_dict` returns. `Tensor.copy_` would spread a smaller tensor over a larger one in
  silence. What only one of them has is left to the loader: older versions lack some parts.
  """
  if isinstance(own, Mapping | TensorDictBase):
    what = f"{name or 'the state'} is a {type(saved).__name__}, not a dictionary"
    _check(isinstance(saved, Mapping | TensorDictBase), what)
    for key in own.keys():  # noqa: SIM118 (a TensorDict iterates over its environments)
      if key in saved.keys():  # noqa: SIM118
        check_saved(saved[key], own[key], finite=finite, name=f"{name}.{key}" if name else str(key))
  elif isinstance(own, Tensor):
    _check(isinstance(saved, Tensor), f"{name} is a {type(saved).__name__}, not a tensor")
    _check(saved.shape == own.shape, f"{name} has shape {list(saved.shape)}, not {list(own.shape)}")
    kind = (saved.dtype.is_floating_point, saved.dtype.is_complex)
    _check(kind == (own.dtype.is_floating_point, False), f"{name} is of {saved.dtype}, not {own.dtype}")
    _check(not finite or bool(saved.isfinite().all()), f"{name} is not finite: take an earlier checkpoint")
  elif isinstance(own, Sequence) and not isinstance(own, str):
    _check(isinstance(saved, Sequence), f"{name} is a {type(saved).__name__}, not a list")
    for index, (then, now) in enumerate(zip(saved, own, strict=False)):
      check_saved(then, now, finite=finite, name=f"{name}[{index}]")
  else:
    _check(isinstance(saved, type(own)), f"{name} is a {type(saved).__name__}, not a {type(own).__name__}")


def _check(right: bool, mistake: str) -> None:
  if not right:
    raise ValueError(mistake)
