"""Pictures of tasks for docs/tasks.md and docs/suites.md: python -m benchmarks.pictures.tasks [task ...].

It draws docs/pictures/<task>.webp, without a name all of the pages'. A task with a demo is shown after
0.8 s of it, any other as it starts, with its policy's images beside it, if there are any. MuJoCo C steps the
robots, so no kernel has to be built.
"""

import re
from collections.abc import Sequence
from pathlib import Path

from PIL import Image

import tasks
from benchmarks.report import line, settings, start
from gpurobot.deploy import demos, trained
from gpurobot.learn.random import Random
from gpurobot.run.policy_images import pictures
from gpurobot.viewer.offscreen import Camera, ShownImages
from gpurobot.viewer.player import Player
from physics.engines import MujocoSimulation
from tasks.base import Task

DOCS = Path(__file__).parents[2] / "docs"
PAGES = (DOCS / "tasks.md", DOCS / "suites.md")
FOLDER = DOCS / "pictures"
WIDTH, HEIGHT = 400, 300  # [pixels]
QUALITY = 80  # of WebP, 0 to 100
SECONDS = 0.8  # of the demo before the picture
HILLS = ("terrain_kinds=[obstacles]", "terrain_levels=2", "level=1")
SETTINGS = {
  "quadruped_rough": HILLS,
  "quadruped_rough_depth": HILLS,
  "motion_track": ("motion=run",),
}  # of tasks with a default start that does not show their purpose


def path_of(name: str, folder: Path = FOLDER) -> Path:
  """Return the file of a task's picture."""
  return folder / f"{name.replace('/', '-')}.webp"


def shown() -> list[str]:
  """Return the tasks with pictures on the pages, in their order."""
  return re.findall(r"!\[(.*?)\]\(pictures/", "".join(page.read_text() for page in PAGES))


def played(name: str) -> tuple[Task, ShownImages]:
  """Return an environment in which a demo has acted, and its policy's images."""
  settings = trained.parse(trained.PolicySettings(), [f"demo={name}"])
  player = Player(trained.load(settings, 1, trained.Engine.mujoco))
  while player.time < SECONDS:
    player.step()
  return player.task, player.policy_images


def started(name: str) -> tuple[Task, ShownImages]:
  """Return an environment at the start of an episode, and a policy's images there."""
  module = tasks.load(name)
  config = settings(module.Config(), SETTINGS.get(name, ()))
  simulation = MujocoSimulation(module.Task.make_model(config), 1, module.Task.outputs)
  task: Task = module.Task(config, 1, random=Random(0, 1, 0, "cpu"), training=False, simulation=simulation)
  shown = pictures(task, task.reset())
  return task, lambda index: {name: images[index].numpy() for name, images in shown.items()}


def draw(name: str, folder: Path = FOLDER) -> Path:
  """Write the picture of a task and return its path."""
  task, sight = played(name) if name in demos.names() else started(name)
  camera = Camera(task, 1, WIDTH, HEIGHT)
  path = path_of(name, folder)
  folder.mkdir(exist_ok=True)
  Image.fromarray(camera.shoot(sight)).save(path, quality=QUALITY, method=6)
  camera.close()
  return path


def run(names: Sequence[str]) -> None:
  """Draw the named tasks, or all of the page."""
  for name in names or shown():
    line(f"pictures.{name}.bytes", draw(name).stat().st_size)


if __name__ == "__main__":
  start(run)
