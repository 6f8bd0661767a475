"""Films and strips of docs/videos: python -m benchmarks.pictures.films [task[=<run folder>] ...].

It draws docs/videos/<task>.webp and, of a robot with legs, <task>_cycle.webp: pictures of a gait cycle, side
by side. The policy is the run's or a demo; without a name it draws what demos do. MuJoCo C steps the robots.
"""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from benchmarks.pictures.tasks import DOCS, QUALITY
from benchmarks.report import check_names, line, start
from gpurobot.deploy import demos, trained
from gpurobot.record import Recording, record
from gpurobot.viewer.offscreen import Camera
from gpurobot.viewer.player import Player

FOLDER = DOCS / "videos"
FILM = ("seconds=3", "fps=15", "width=240", "height=180", "seed=1", "engine=mujoco")
# Films and their settings; the level of rough ground is about what a training reaches.
FILMS: dict[str, tuple[str, ...]] = {
  "quadruped_rough": ("env.terrain_kinds=[stairs_up]", "env.level=5"),
  "humanoid": (),
  "hand_cube": (),
  "quadcopter": (),
}
STRIPS = ("quadruped", "quadruped_rough", "biped", "humanoid")
PICTURES, WIDTH, HEIGHT = 6, 160, 160  # of a strip [pixels]
BEFORE, WATCHED = 2.0, 1.6  # time before a strip, and in which the cycle is found [s]


def policy_of(name: str, source: str) -> str:
  """Return the setting that names a task's policy, a demo if there is no run folder."""
  return f"checkpoint={source}" if source else f"demo={name}"


def film(name: str, source: str, folder: Path = FOLDER) -> Path:
  """Write the film of a task and return its path."""
  path = folder / f"{name}.webp"
  words = [policy_of(name, source), f"video={path}", *FILM, *FILMS[name]]
  record(trained.parse(Recording(), words))
  return path


def cycle_of(angles: NDArray[np.float32]) -> int:
  """Return after how many steps joint angles [steps, joints] first repeat; half of them if they do not."""
  changes = [float(np.abs(angles[lag:] - angles[:-lag]).mean()) for lag in range(1, len(angles) // 2)]
  small = sum(changes) / len(changes) / 3
  for lag in range(2, len(changes)):
    before, change, after = changes[lag - 2 : lag + 1]
    if change <= min(small, before, after):
      return lag
  return len(angles) // 2


def strip(name: str, source: str, folder: Path = FOLDER) -> Path:
  """Write the strip of a task with a robot that walks ahead, and return its path."""
  words = [policy_of(name, source), *FILMS.get(name, ())]
  player = Player(trained.load(trained.parse(trained.PolicySettings(), words), 1, trained.Engine.mujoco))
  if player.commands:
    (_low, fastest, _unit), *others = player.commands.ranges.values()
    player.command = [fastest, *(0.0 for _ in others)]

  def angles_until(time: float) -> list[NDArray[np.float32]]:
    angles = []
    while player.time < time:
      player.step()
      angles.append(player.task.sim.qpos[0, 7:].cpu().numpy().copy())
    return angles

  angles_until(BEFORE)
  watched = np.stack(angles_until(BEFORE + WATCHED))
  step = player.task.dt * cycle_of(watched) / PICTURES
  camera, pictures, begun = Camera(player.task, 1, WIDTH, HEIGHT), [], player.time
  for index in range(PICTURES):
    angles_until(begun + index * step)
    pictures.append(camera.shoot())
  camera.close()
  path = folder / f"{name}_cycle.webp"
  Image.fromarray(np.concatenate(pictures, 1)).save(path, quality=QUALITY, method=6)
  return path


def run(words: Sequence[str]) -> None:
  """Draw films and strips of the named tasks, or of those with demos."""
  known = list(dict.fromkeys((*FILMS, *STRIPS)))
  sources = dict(word.partition("=")[::2] for word in words or set(known) & set(demos.names()))
  check_names(list(sources), known)
  for name, source in sources.items():
    for make, names in ((film, FILMS), (strip, STRIPS)):
      if name in names:
        path = make(name, source)
        line(f"films.{path.stem}.bytes", path.stat().st_size)


if __name__ == "__main__":
  start(run)
