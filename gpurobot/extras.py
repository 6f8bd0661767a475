"""Optional packages, and the error message if one is missing."""

import contextlib
from collections.abc import Iterator

from gpurobot.config import ConfigError

# The packages that `pip install gpurobot[<extra>]` adds.
EXTRAS = {
  "viewer": ("mujoco", "viser", "mjviser", "imageio"),
  "export": ("onnx", "onnxruntime", "onnxscript"),
  "ray": ("ray",),
}


@contextlib.contextmanager
def require_extra(extra: str) -> Iterator[None]:
  """Turn an ImportError in the block into a ConfigError that says how to install the missing package."""
  try:
    yield
  except ImportError as error:
    raise ConfigError(f"{error.name or error} is missing: pip install 'gpurobot[{extra}]'") from error
