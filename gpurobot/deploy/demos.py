"""Policies that come with gpurobot: assets/demos/<task>.pt, without the parts for training alone."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from gpurobot.run import checkpoint
from gpurobot.settings.config import ConfigError, suggestion
from tasks.base import ASSETS

FOLDER = ASSETS / "demos"
MOST_BYTES = 10**6
OF_A_POLICY = ("network", "obs_dims", "num_actions", "choices", "observations", "names")
OF_A_RUN = ("run_dir", "resume", "checkpoint")  # settings with the paths of its training


def names() -> list[str]:
  """Return the tasks that have a demo."""
  return sorted(path.stem for path in FOLDER.glob("*.pt"))


def find(name: str) -> Path:
  """Return the file of a demo; raise ConfigError if there is none of this name."""
  if name not in names():
    hint = suggestion(name, names()) or f"; there are {', '.join(names())}"
    raise ConfigError(f"there is no demo '{name}'{hint}")
  return FOLDER / f"{name}.pt"


def write(content: Mapping[str, Any], folder: Path = FOLDER) -> Path:
  """Write the policy of a checkpoint's content as a demo of its task; return the file.

  The critic, which does not act, is rounded to bf16, so that a wheel compresses it to half the size.
  Raises ValueError if it is larger than MOST_BYTES.
  """
  config = dict(content["config"]) | dict.fromkeys(OF_A_RUN)
  policy = {name: part for name, part in content["learner"].items() if name in OF_A_POLICY}
  critic = {name: x for name, x in policy["network"].items() if name.startswith("critic.")}
  policy["network"] = policy["network"] | {name: x.bfloat16().to(x.dtype) for name, x in critic.items()}
  path = folder / f"{config['task']}.pt"
  folder.mkdir(exist_ok=True)
  checkpoint.save(path, {"config": config, "learner": policy})
  if path.stat().st_size > MOST_BYTES:
    path.unlink()
    raise ValueError(f"the policy of {config['task']} takes more than {MOST_BYTES:,} bytes")
  return path
