"""Tasks whose robot files come with another package: the folder of these files, and settings for training."""

import importlib.util
from pathlib import Path

from tasks.core.errors import TaskError

# For a few CPU cores: this physics is cheap, so the network takes the time, with many updates on few samples.
TRAIN: dict[str, object] = {"num_envs": 512}
PPO: dict[str, object] = {
  "horizon": 64,
  "epochs": 5,
  "minibatches": 8,
  "reference_minibatch": 4096,
  "hidden": [128, 128],
}


def folder(package: str, missing: str) -> Path:
  """Return the folder of an installed package, without importing it.

  Raises TaskError with the message `missing` if it is not installed.
  """
  found = importlib.util.find_spec(package)
  if found is None or found.origin is None:
    raise TaskError(missing)
  return Path(found.origin).parent
