"""Replay of a diverged environment: python -m gpurobot.replay file=<run folder or file>.

Training writes the last states of diverged environments to the folder `diverged/` of the run. This program
prints them as a table, one line per step; video=<file> renders them, one frame per state.
"""

import dataclasses
import sys
from pathlib import Path
from typing import Any

import numpy as np
import torch
from rich.console import Console
from rich.table import Table
from torch import Tensor

import tasks
from gpurobot import extras
from gpurobot.learn.identity import compare
from gpurobot.learn.random import Random
from gpurobot.run import checkpoint
from gpurobot.run.divergence_dumps import FOLDER
from gpurobot.settings.config import CHANGED, ConfigError, assign, code_keys, defaults, leaves, option, pairs
from gpurobot.shell import cli
from physics import Model, identity
from physics.engines import MujocoSimulation
from tasks.base import DIVERGED, Task

PROGRAM = "python -m gpurobot.replay"


@dataclasses.dataclass
class Replay:
  """Replay of a diverged environment."""

  file: str | None = option(None, "file in the folder diverged/ of a run, or a run folder: its newest file")
  task: str | None = option(None, "its task, if that is your own: a dotted module path or a .py file")
  changed: bool = option(False, CHANGED)
  states: int = option(20, "number of states in the table, the last ones", low=1)
  video: str | None = option(None, "video file to write: .mp4, .gif or .webp; null: no video")
  fps: float = option(10.0, "frames per second of the video", low=1, high=120)
  width: int = option(640, "width of the video", "pixels", low=16, high=4096)
  height: int = option(480, "height of the video", "pixels", low=16, high=4096)
  debug: bool = option(False, "show the traceback of an error")


def find(source: str | None) -> Path:
  """Return `source` itself, or the newest file of a run folder; raise ConfigError if there is none."""
  if source is None:
    raise ConfigError(f"file=<run folder, or file in its folder {FOLDER}/> is missing")
  path = Path(source)
  files = sorted(path.glob(f"{FOLDER}/*.pt")) if path.is_dir() else [path]
  if not files:
    raise ConfigError(f"'{source}' has no file in {FOLDER}/: none of its environments diverged")
  return files[-1]


def read(source: str | None, task: str | None = None) -> tuple[type[Task], Any, dict[str, Any]]:
  """Return the task, its settings and the content of the file that `find` finds.

  `task` is the user's name for the task. Raises ConfigError, CheckpointError or TaskError.
  """
  path = find(source)
  saved = checkpoint.read(path)
  if "states" not in saved:
    raise ConfigError(f"'{path}' holds no states; name a file in the folder {FOLDER}/ of a run")
  settings = saved["config"]
  module = tasks.load(settings["task"], source, task)
  unused = code_keys(defaults(module))  # networks and losses: a replay needs and imports none
  known = {key: value for key, value in settings.items() if key not in unused}
  return module.Task, checkpoint.configure(path, known, module).env, saved


def owners(model: Model) -> dict[str, list[str]]:
  """Return the name of the joint or actuator of each element of qpos, qvel and ctrl."""
  starts = {"qpos": (model.jnt_qposadr, model.nq), "qvel": (model.jnt_dofadr, model.nv)}
  sizes = {field: np.diff(first, append=count) for field, (first, count) in starts.items()}
  found = {field: np.repeat(identity(model)["joint"], size).tolist() for field, size in sizes.items()}
  return found | {"ctrl": np.repeat(model.actuator_names, model.actuator_ctrlnum).tolist()}


def worst(values: Tensor, names: list[str]) -> str:
  """Return the name and number of the largest absolute value of `values` [n]; inf and nan come first."""
  if not names:
    return "-"
  index = int(values.abs().nan_to_num(torch.inf).argmax())
  return f"{names[index]} {float(values[index]):.4g}"


def cause(saved: dict[str, Any], names: dict[str, list[str]]) -> str:
  """Return the diverged quantity of the last state: a position, a velocity, the reward or an observation."""
  for field, part in (("qpos", "position"), ("qvel", "velocity")):
    last = saved["states"][field][-1]
    if not last.abs().sum() < DIVERGED:
      return f"the {part} of joint {worst(last, names[field])}"
  reward = float(saved["reward"][-1])
  part = "an observation" if abs(reward) < DIVERGED else f"the reward, {reward:.4g}"
  return f"{part} (positions and velocities are within bounds)"


def tell(saved: dict[str, Any], names: dict[str, list[str]], count: int) -> None:
  """Print the diverged quantity and the last `count` states, one line each."""
  states, reward = saved["states"], saved["reward"]
  print(
    f"environment {saved['env']} of {saved['config']['task']} diverged at iteration {saved['iteration']}: "
    f"{cause(saved, names)}; {len(reward)} states"
  )
  table = Table("step", "reward", "fastest joint [m/s or rad/s]", "largest control", box=None)
  for index in range(max(0, len(reward) - count), len(reward)):
    columns = (worst(states[field][index], names[field]) for field in ("qvel", "ctrl"))
    table.add_row(str(index + 1 - len(reward)), f"{float(reward[index]):.4g}", *columns)
  Console(highlight=False, markup=False, color_system=None).print(table)


def film(settings: Replay, kind: type[Task], config: Any, saved: dict[str, Any]) -> None:
  """Render the states that have not diverged; raise ConfigError if there is no renderer."""
  with extras.require_extra("viewer"):
    from gpurobot.viewer.film import Film  # noqa: PLC0415
    from gpurobot.viewer.offscreen import Camera  # noqa: PLC0415
  simulation = MujocoSimulation(kind.make_model(config), 1, kind.outputs)
  task = kind(config, 1, random=Random(0, 1), training=False, simulation=simulation)
  fields = {**saved["states"], **{name: value[None] for name, value in saved["varied"].items()}}
  whole = torch.stack([states.flatten(1).abs().sum(1) < DIVERGED for states in saved["states"].values()]).all(
    0
  )
  drawn = whole.nonzero()[:, 0].tolist()
  with Film(Path(str(settings.video)), settings.fps) as pictures:
    camera = None
    for index in drawn:
      for name, values in fields.items():
        getattr(task.sim, name)[0] = values[min(index, len(values) - 1)]
      camera = camera or Camera(task, 1, settings.width, settings.height, marked=False)  # goals were not kept
      pictures.add(camera.shoot())
  left = f"; {len(whole) - len(drawn)} diverged states are left out" if len(drawn) < len(whole) else ""
  print(f"{settings.video}: {len(drawn)} states{left}")


def show(settings: Replay) -> None:
  """Print the table, and write the video if it is wanted."""
  kind, config, saved = read(settings.file, settings.task)
  model = kind.make_model(config)
  compare(str(settings.file), saved.get("names", {}), identity(model), settings.changed)
  tell(saved, owners(model), settings.states)
  if settings.video:
    film(settings, kind, config, saved)


def parse(settings: Replay, words: list[str]) -> Replay:
  """Return settings with arguments applied; a word may be the run folder alone."""
  return assign(settings, pairs(cli.with_folder(words, "file"), leaves(settings)))


def main(argv: list[str]) -> None:
  """Replay a file with the settings in `argv`."""
  cli.start(Replay(), PROGRAM, argv, show, parse)


if __name__ == "__main__":
  main(sys.argv[1:])
