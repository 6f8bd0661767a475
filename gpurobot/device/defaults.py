"""Defaults of torch that a user may have changed: type, device, gradients."""

import contextlib
from collections.abc import Iterator

import torch

from gpurobot.settings.config import ConfigError

CPU = torch.device("cpu")


def current_defaults() -> tuple[object, ...]:
  """Return the defaults of torch that a training needs."""
  return torch.get_default_dtype(), torch.get_default_device(), torch.is_grad_enabled()


@contextlib.contextmanager
def own_defaults(*, autocast: bool = False) -> Iterator[None]:
  """Give torch its own defaults, whatever the user has set: type, device, gradients.

  Raises ConfigError in a block of autocast, which keeps the first casts of weights until its end, unless
  `autocast` may stay.
  """
  if not autocast and any(map(torch.is_autocast_enabled, ("cpu", "cuda"))):
    raise ConfigError("torch.autocast is on: call gpurobot outside of it, with ppo.precision=bf16")
  dtype, elsewhere = torch.get_default_dtype(), torch.get_default_device() != CPU
  torch.set_default_dtype(torch.float32)
  try:
    with contextlib.ExitStack() as stack:
      for mode in (torch.inference_mode(False), torch.enable_grad()):
        stack.enter_context(mode)
      if elsewhere:  # not always, as it costs time in every call
        stack.enter_context(CPU)
      yield
  finally:
    torch.set_default_dtype(dtype)
