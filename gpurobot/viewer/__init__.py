"""What people see of a trained policy: its robot in a browser, in MuJoCo's own window, in a video."""

import contextlib
from collections.abc import Iterator

from gpurobot.config import ConfigError


@contextlib.contextmanager
def needed() -> Iterator[None]:
  """Turn the failure of an import within into a ConfigError that says how to install what is missing."""
  try:
    yield
  except ImportError as error:
    raise ConfigError(f"{error.name or error} is missing: pip install 'gpurobot[viewer]'") from error
