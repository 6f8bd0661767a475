"""torch's compiler, which joins operations into few kernels: where it is used, and whether it works there."""

import warnings
from collections.abc import Callable
from typing import Any, TypeVar

import torch

from gpurobot.config import ConfigError, Switch

T = TypeVar("T")


class Compiler:
  """Compiles functions of tensors whose shapes never change, or leaves them as they are."""

  def __init__(self, switch: Switch, device: torch.device) -> None:
    """Try it out where it is wanted: it needs compilers of its own, which a machine may lack.

    Where it fails, `on` raises ConfigError, and `auto` warns and does without.
    """
    self._compiled: dict[Callable[..., Any], Callable[..., Any]] = {}
    self.used = switch is Switch.on or (switch is Switch.auto and device.type == "cuda")
    if self.used and (failure := _try_out(device)):
      if switch is Switch.on:
        raise ConfigError(f"compile=on: torch.compile fails here ({failure}); write compile=off")
      warnings.warn(f"no torch.compile ({failure}); compile=off does without", stacklevel=3)
      self.used = False

  def __call__(self, function: Callable[..., T]) -> Callable[..., T]:
    """Return the function compiled, the same for the same function, or as it is where nothing is compiled.

    The first call runs it as it is, which makes what is made once; the second compiles.
    """
    if not self.used:
      return function
    if function not in self._compiled:
      self._compiled[function] = _from_second_call(function)
    return self._compiled[function]


def _from_second_call(function: Callable[..., T]) -> Callable[..., T]:
  """Return a function that runs itself once, and compiled from then on."""
  compiled, called = torch.compile(function, dynamic=False), False

  def call(*inputs: Any) -> T:
    nonlocal called
    if called:
      return compiled(*inputs)
    called = True
    return function(*inputs)

  call.__name__ = getattr(function, "__name__", type(function).__name__)
  return call


def _try_out(device: torch.device) -> str:
  """Return why nothing can be compiled for the device, in one line, or nothing."""
  try:
    torch.compile(torch.add, dynamic=False)(torch.ones(1, device=device), 1)
  except Exception as error:  # each of its parts has errors of its own
    return next(iter(str(error).splitlines()), type(error).__name__)
  return ""
