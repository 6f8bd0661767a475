"""List of the tasks, description of a task, and template of a new one.

`gpurobot tasks`                          lists all tasks, as `python -m tasks` does;
`gpurobot tasks describe=ant [env.x=...]` prints actions, observations and rewards by name;
`gpurobot tasks new=my_task from=ant`     writes my_task.py, a copy of a task to edit, ready to train;
`debug=true` with any of them             shows the traceback of an error.
"""

# ruff: noqa: PLC0415 (the list of the tasks needs no torch)
from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import tasks
from gpurobot.run.output import aligned, until_unread
from gpurobot.shell.programs import HELP

if TYPE_CHECKING:
  from tasks.base import Task

KEYS = ("describe", "new", "from", "debug")


def describe(name: str, words: list[str]) -> str:
  """Return a description of the named task; `words` are its settings, such as env.substeps=2."""
  from gpurobot.learn.random import Random
  from gpurobot.settings.config import assign, defaults, leaves, pairs

  module = tasks.load(name)
  config = defaults(module)
  config = assign(config, pairs(words, [key for key in leaves(config) if key.startswith("env.")]))
  task: Task = module.Task(config.env, 1, random=Random(config.seed, 1))
  parts = [_summary(name, module.__doc__ or "", task), _actions(task)]
  parts += [_observations(task, group) for group in task.observations.widths]
  parts += [_rewards(task), _happenings(task)]
  return "\n\n".join(part for part in parts if part)


def _summary(name: str, about: str, task: Task) -> str:
  seconds = task.max_episode_steps * task.dt
  return (
    f"{name}: {about.partition(chr(10))[0]}\n"
    f"control step {task.dt:.4g} s = {task.config.substeps} x {task.model.timestep:.4g} s; "
    f"episode {task.max_episode_steps} steps = {seconds:.4g} s; {task.model.nv} degrees of freedom"
  )


def _actions(task: Task) -> str:
  kinds = [f"one of {count}" for count in task.choices] or ["-1 ... 1"] * task.num_actions
  rows = [
    (str(index), name, kind)
    for index, (name, kind) in enumerate(zip(task.action_names(), kinds, strict=True))
  ]
  return table(f"actions: {task.num_actions}", rows)


def _observations(task: Task, group: str) -> str:
  """Return a table of a group's blocks: columns, name and observation noise; and of its images."""
  observations = task.observations
  rows, start = [], 0
  for block, width in observations.widths[group].items():
    columns = f"{start}" if width == 1 else f"{start} ... {start + width - 1}"
    error = getattr(task.config, f"noise_{block}", 0.0) if group == "policy" else 0.0
    rows.append((columns, block, f"+- {error:g}" if error else ""))
    start += width
  for name, image in observations.images.items():
    if group in image.groups:
      frames = f", {observations.stacks[name]} frames" if observations.stacks[name] > 1 else ""
      rows.append(("image", name, f"{' x '.join(map(str, image.shape))} {image.kind}{frames}"))
  title = f"observation '{group}': {observations.lengths[group] * start}"
  if observations.lengths[group] > 1:
    title += f" = {observations.lengths[group]} observations of {start}, oldest first"
  late = getattr(task.config, f"delay_{group}", 0)
  return table(title + (f", delayed by up to {late} steps in training" if late else ""), rows)


def _rewards(task: Task) -> str:
  from gpurobot.settings.config import leaves

  settings = leaves(task.config)
  rows = [
    (f"{weight:g}", name, settings[f"reward_{name}"].metadata.get("help", ""))
    for name, weight in task.reward_weights.items()
  ]
  return table("rewards: weight, term and meaning", rows)


def _happenings(task: Task) -> str:
  """Return a table of the model fields that vary between environments, and of the random events."""
  rows = [("varies", field, "") for field in task.vary]
  rows += [
    ("happens", name, "every {:g} to {:g} s".format(*event.interval)) for name, event in task.events.items()
  ]
  return table("in training", rows) if rows else ""


def table(title: str, rows: Sequence[Sequence[str]]) -> str:
  """Return a title and rows with aligned columns."""
  return "\n".join([title, *(f"  {line}" for line in aligned(rows))])


def new(name: str, source: str) -> Path:
  """Write the file of a new task `name`, a copy of the task `source`; return its path.

  Raises ValueError if the file exists or the name is not a valid module name.
  """
  path = Path(name).with_suffix(".py")
  if not path.stem.isidentifier():
    raise ValueError(f"new={name}: the name of a task has to be a Python identifier, such as my_task")
  if path.exists():
    raise ValueError(f"new={name}: the file {path} already exists; choose another name")
  module = tasks.load(source)
  text = Path(str(module.__file__)).read_text()
  try:
    path.write_text(text.replace('"""', f'"""{path.stem}, begun as a copy of {source}.\n\n', 1))
  except OSError as error:
    raise ValueError(f"new={name}: {path} cannot be written: {error.strerror}") from error
  return path


def run(words: list[str]) -> str:
  """Return the output for the arguments."""
  from gpurobot.settings.config import ConfigError, pairs, suggestion

  own = [word for word in words if word.partition("=")[0] in KEYS]
  rest = [word for word in words if word not in own]
  given = pairs(own, KEYS)
  if "describe" in given:
    return describe(given["describe"], rest)
  if rest:
    key = rest[0].partition("=")[0]
    raise ConfigError(f"unknown key '{key}'{suggestion(key, KEYS)}")
  if "from" in given and "new" not in given:
    raise ConfigError(f"from={given['from']} needs a name for the copy: add new=<name>")
  if "new" in given:
    path = new(given["new"], given.get("from", "cartpole"))
    return f"wrote {path}; train it with: python train.py task={path}"
  return "\n".join(tasks.available())


def main(argv: list[str]) -> None:
  """Print the output for `argv`; a mistake ends the program with one line and status 2."""
  if not argv or {*HELP} & {*argv}:
    with until_unread():
      print(__doc__ if argv else "\n".join(tasks.available()))
    return
  from gpurobot.device.distributed import World
  from gpurobot.shell import cli

  with cli.user_errors(argv, World()):
    print(run(argv))


if __name__ == "__main__":
  main(sys.argv[1:])
