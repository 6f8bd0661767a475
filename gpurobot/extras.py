"""Optional packages, and the error message if one is missing."""

import contextlib
import importlib.util
from collections.abc import Iterator

from gpurobot.settings.config import ConfigError

# The packages that `pip install gpurobot[<extra>]` adds.
EXTRAS = {
  "plot": ("matplotlib", "tensorboard"),
  "viewer": ("mujoco", "viser", "mjviser", "imageio"),
  "export": ("onnx", "onnxruntime", "onnxscript"),
  "ray": ("ray",),
  "wandb": ("wandb",),
  "mlflow": ("mlflow",),
  "unitree": ("cyclonedds",),
}


def missing(extra: str) -> list[str]:
  """Return the packages of an extra that are not installed; a folder of such a name is no package."""
  specs = {package: importlib.util.find_spec(package) for package in EXTRAS[extra]}
  return [package for package, spec in specs.items() if spec is None or spec.origin is None]


@contextlib.contextmanager
def require_extra(extra: str) -> Iterator[None]:
  """Turn an ImportError in the block into a ConfigError that says how to install the missing package."""
  try:
    yield
  except ImportError as error:
    raise ConfigError(f"{error.name or error} is missing: pip install 'gpurobot[{extra}]'") from error


def check(extra: str) -> None:
  """Raise ConfigError if a package of an extra is missing, without importing any."""
  with require_extra(extra):
    for package in missing(extra):
      raise ModuleNotFoundError(name=package)
