"""Trials of the toy for tests, and what they would leave behind."""

import json
from types import SimpleNamespace

import train
from gpurobot.search.trial import Trial
from tests.gpurobot import toy

TOY = [f"task={toy.__file__}", "max_iterations=1"]


def finish(
  trial: Trial, return_: float | None, speed: float = 1.0, level: float = 0.0, iterations: int = 1
) -> None:
  """Write the record that a run would leave: three rows, the last of which is at the level."""
  trial.folder.mkdir(parents=True, exist_ok=True)
  summary = {"seed": trial.config.seed, "return": return_, "iterations": iterations}
  summary |= {"steps": 512, "seconds": 3.0, "steps_per_second": speed}
  (trial.folder / "summary.json").write_text(json.dumps(summary))
  with (trial.folder / "metrics.csv").open("w") as file:
    file.write(f"seconds,return\n1.0,nan\n2.0,{level - 1}\n3.0,{level}\n")


def train_here(trial: Trial) -> SimpleNamespace:
  """Train in this process instead of one of its own; return what has ended as a process would."""
  _, *words = trial.command()
  status = train.main(words)
  return SimpleNamespace(poll=lambda: status)
