"""Tasks with robot files of another package: the folder of these files, and settings for training."""

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


def folder(package: str, tasks: str, install: str) -> Path:
  """Return the folder of an installed package, without importing it.

  `tasks` is the pattern of the tasks that use it, `install` what pip installs to have it, for the message of
  the TaskError that is raised where the package is missing.
  """
  found = importlib.util.find_spec(package)
  if found is None or found.origin is None:
    raise TaskError(f"the tasks {tasks} use the robot files of {package}: pip install {install}")
  return Path(found.origin).parent
