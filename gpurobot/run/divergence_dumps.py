"""Dumps of diverged environments: their last states, one file each, for `python -m gpurobot.replay`."""

from pathlib import Path

from gpurobot.learn.algorithm import Algorithm
from gpurobot.learn.identity import names_of
from gpurobot.run import checkpoint
from gpurobot.settings.config import TrainConfig, to_dict

FOLDER = "diverged"  # name of the folder in a run folder
MOST = 100  # maximum number of files; if many environments diverge, more files show nothing new


class DivergenceDumps:
  """Writer of a run's dumps; every rank writes its own environments."""

  def __init__(self, config: TrainConfig, learner: Algorithm, folder: Path) -> None:
    self.config, self.learner, self.folder = config, learner, folder / FOLDER
    self._warned = False

  def write(self) -> None:
    """Write the environments that diverged since the last call; raise OSError if the disk is full."""
    found = self.learner.env.diverged()
    first = self.learner.world.rank * self.learner.env.num_envs
    for dump in found.unbind(0):
      if len(self.files()) >= MOST:
        return
      self.folder.mkdir(exist_ok=True)
      steps, env = int(dump["steps"]), first + int(dump["env"])
      content = {
        "config": to_dict(self.config),
        "iteration": self.learner.iteration,
        "env": env,
        "states": {name: states[-steps:] for name, states in dump["states"].items()},
        "reward": dump["reward"][-steps:],
        "varied": dump["varied"],
        "names": names_of(self.learner.env),
      }
      checkpoint.save(self.folder / f"{self.learner.iteration:06d}-{env}.pt", content)

  def files(self) -> list[Path]:
    """Return the files so far, sorted by iteration."""
    return sorted(self.folder.glob("*.pt"))

  def tell(self, count: float) -> list[str]:
    """Return a warning, once, if `count` environments have diverged so far and there are files."""
    files = [] if self._warned or not count else self.files()
    if not files:
      return []
    self._warned = True
    command = f"python -m gpurobot.replay file={files[-1]} task={self.config.task}"
    return [
      f"{count:.0f} environment(s) diverged and were reset; training goes on; see the cause with: {command}"
    ]
