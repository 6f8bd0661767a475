"""torch.compile with static shapes, and a test of whether it works on this machine."""

import warnings
from collections.abc import Callable
from typing import Any, TypeVar

import torch

from gpurobot.settings.config import ConfigError, Switch

T = TypeVar("T")

VERSIONS = 256  # of one function: one for each learner in the process; torch's limit is 8


class Compiler:
  """Compiler of functions of tensors with static shapes; if it is off, it returns them unchanged."""

  def __init__(self, switch: Switch, device: torch.device) -> None:
    """Test torch.compile if it is wanted: it needs a C++ or GPU compiler, which a machine may lack.

    If it fails, `on` raises ConfigError; `auto` warns and continues without it.
    """
    self._compiled: dict[Callable[..., Any], Callable[..., Any]] = {}
    self.used = switch is Switch.on or (switch is Switch.auto and device.type == "cuda")
    if self.used:
      # Beyond the limit torch would go on uncompiled, and only log it.
      torch._dynamo.config.recompile_limit = VERSIONS
      torch._dynamo.config.fail_on_recompile_limit_hit = True
      # Torch advises TF32 by a name of its own: here it is the setting `tf32`.
      warnings.filterwarnings("ignore", "TensorFloat32 tensor cores", UserWarning)
    if self.used and (failure := _try_out(device)):
      if switch is Switch.on:
        raise ConfigError(f"compile=on: torch.compile fails here ({failure}); write compile=off")
      warnings.warn(f"torch.compile fails here, so it is off ({failure}); write compile=off", stacklevel=3)
      self.used = False

  def __call__(self, function: Callable[..., T]) -> Callable[..., T]:
    """Return the compiled function, cached by function, or the function itself if compilation is off.

    Its first call runs uncompiled, so that buffers made once are made there; the second call compiles.
    """
    if not self.used:
      return function
    if function not in self._compiled:
      self._compiled[function] = _from_second_call(function)
    return self._compiled[function]


def _from_second_call(function: Callable[..., T]) -> Callable[..., T]:
  """Return a function that runs uncompiled in its first call and compiled in later ones."""
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
  """Return why compilation fails for the device, in one line, or "" if it works."""
  try:
    torch.compile(torch.add, dynamic=False)(torch.ones(1, device=device), 1)
  except Exception as error:  # each stage of the compiler has its own exceptions
    return next(iter(str(error).splitlines()), type(error).__name__)
  return ""
