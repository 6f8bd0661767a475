"""Packages that only some programs need, and what is said where one is missing."""

import contextlib
from collections.abc import Iterator

from gpurobot.config import ConfigError

# What an installation with `gpurobot[<extra>]` can import.
EXTRAS = {
  "viewer": ("mujoco", "viser", "mjviser", "imageio"),
  "export": ("onnx", "onnxruntime", "onnxscript"),
}


@contextlib.contextmanager
def require_extra(extra: str) -> Iterator[None]:
  """Turn the failure of an import within into a ConfigError that says how to install what is missing."""
  try:
    yield
  except ImportError as error:
    raise ConfigError(f"{error.name or error} is missing: pip install 'gpurobot[{extra}]'") from error
