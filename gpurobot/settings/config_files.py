"""Settings in files: YAML, and the config.json of a run."""

import io
import logging
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, TextIO

import numpy as np
import yaml
from omegaconf import OmegaConf
from omegaconf.errors import OmegaConfBaseException

from gpurobot.settings.config import ConfigError, TrainConfig, assign
from gpurobot.settings.removed_keys import present

NO_SETTINGS = "holds no settings; write lines such as num_envs: 1024"
LOG = logging.getLogger(__name__)
DEEPEST = 100  # levels of nesting: PyYAML recurses, and 50,000 overflow the stack of the process
OF_A_RUN = ("run_dir", "resume", "changed")  # keys of a config.json that do not suit another run


def read_all(paths: Iterable[str]) -> dict[str, Any]:
  """Return the settings of several files by dotted key; later files win. Raises ConfigError."""
  return {key: value for path in paths for key, value in read(path).items()}


def applied(config: TrainConfig, files: Mapping[str, Any]) -> TrainConfig:
  """Return the configuration with the settings of files; raise ConfigError that names files as the source."""
  try:
    return assign(config, files) if files else config
  except ConfigError as error:
    raise ConfigError(f"a file of config=...: {error}") from error


def read(path: str) -> dict[str, Any]:
  """Return the settings of a file by dotted key; raise ConfigError if it cannot be read or holds none.

  Keys are nested or dotted. Of a run's config.json the keys OF_A_RUN are left out, and those of an older
  version with the value of a constant too.
  """
  if not path:
    raise ConfigError("'config=' has no value; write config=<file>")
  if (place := Path(path)).is_fifo():
    LOG.warning("config=%s is a pipe: it is read once another program writes to it", path)
  elif place.exists() and not place.is_file() and not place.is_dir():
    raise ConfigError(f"config={path} is no file: write config=<file>")
  try:
    text = io.StringIO(place.read_text())
    vars(text)["name"] = path  # for messages of YAML's reader
    _check_depth(text, path)
    text.seek(0)
    content = OmegaConf.to_container(OmegaConf.load(text), resolve=False)
  except OSError as error:
    if error.strerror is None:  # OmegaConf's, of a file with one word or number
      raise ConfigError(f"config={path} {NO_SETTINGS}") from error
    raise ConfigError(f"config={path} cannot be read: {error.strerror}") from error
  except ConfigError:
    raise
  except (yaml.YAMLError, OmegaConfBaseException, RecursionError, ValueError) as error:
    raise ConfigError(f"config={path} is not YAML: {' '.join(str(error).split())}") from error
  if not isinstance(content, Mapping):
    raise ConfigError(f"config={path} {NO_SETTINGS}")
  values = dict(flat(content))
  if Path(path).name == "config.json":
    return {key: value for key, value in present(values).items() if key not in OF_A_RUN}
  return values


def _check_depth(text: TextIO, path: str) -> None:
  depth = 0
  for event in yaml.parse(text, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader)):
    depth += isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)
    if depth > DEEPEST:
      raise ConfigError(f"config={path} is nested more than {DEEPEST} levels deep")


def flat(settings: Mapping[Any, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
  """Yield nested settings by dotted key; NumPy's numbers become Python's, and paths their text."""
  for key, value in settings.items():
    if isinstance(value, Mapping):
      yield from flat(value, f"{prefix}{key}.")
    elif isinstance(value, np.generic):
      yield f"{prefix}{key}", value.item()
    else:
      yield f"{prefix}{key}", str(value) if isinstance(value, Path) else value
