"""torch's compiler, which joins operations into few kernels: where it is used, and whether it works there."""

import warnings
from collections.abc import Callable
from typing import TypeVar

import torch

from gpurobot.config import ConfigError, Switch

T = TypeVar("T")


class Compiler:
  """Compiles functions of tensors whose shapes never change, or leaves them as they are."""

  def __init__(self, switch: Switch, device: torch.device) -> None:
    """Try it out where it is wanted: it needs compilers of its own, which a machine may lack.

    Where it fails, `on` raises ConfigError, and `auto` warns and does without.
    """
    self.used = switch is Switch.on or (switch is Switch.auto and device.type == "cuda")
    if self.used and (failure := _try_out(device)):
      if switch is Switch.on:
        raise ConfigError(f"compile=on: torch.compile fails here ({failure}); write compile=off")
      warnings.warn(f"no torch.compile ({failure}); compile=off does without", stacklevel=3)
      self.used = False

  def __call__(self, function: Callable[..., T]) -> Callable[..., T]:
    """Return the function, compiled at its first call."""
    return torch.compile(function, dynamic=False) if self.used else function


def _try_out(device: torch.device) -> str:
  """Return why nothing can be compiled for the device, in one line, or nothing."""
  try:
    torch.compile(torch.add, dynamic=False)(torch.ones(1, device=device), 1)
  except Exception as error:  # each of its parts has errors of its own
    return next(iter(str(error).splitlines()), type(error).__name__)
  return ""
