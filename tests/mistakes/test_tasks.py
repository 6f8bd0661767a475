"""Mistakes in the file of a task, and in its robot: file, line or method are named, and what to write."""

import re
from pathlib import Path

import pytest
import torch

import train
from tests.mistakes.changing_files import CHANGING, NONFINITE, SETTINGS
from tests.mistakes.task_files import EFFORT, METHODS, MODULES, PENDULUM, ROBOTS, TENSORS
from tests.mistakes.told import SMALL, told

pytestmark = pytest.mark.usefixtures("keep_signal_handlers")
CASES = {
  f"{kind}: {name}": change
  for kind, changes in (
    ("module", MODULES),
    ("method", METHODS),
    ("tensor", TENSORS),
    ("robot", ROBOTS),
    ("not finite", NONFINITE),
    ("changes later", CHANGING),
    ("torch's settings", SETTINGS),
  )
  for name, change in changes.items()
}


@pytest.mark.parametrize(("old", "new", "message"), CASES.values(), ids=CASES)
def test_a_mistake_is_told_in_one_line(old, new, message, tmp_path: Path, monkeypatch, capsys):
  monkeypatch.chdir(tmp_path)
  file = Path("mine.py")
  assert old in PENDULUM
  file.write_text(PENDULUM.replace(old, new, 1))
  line = told(capsys, train.main, ["task=mine.py", *SMALL, "run_dir=run"])
  place = re.match(r"mine\.py, line (\d+)", line)
  if place:  # where the mistake is, or the class that has it begins
    there = file.read_text().splitlines()[int(place[1]) - 1].strip()
    assert there in new or new in there or there.startswith(("@dataclass", "class"))
    message = message.replace("<line>", place[0])
  assert line.startswith(
    message.replace("task '<file>'", "task 'mine.py'").replace("<folder>", str(tmp_path))
  )


@pytest.fixture(autouse=True)
def _settings_of_torch():
  """Give the settings back that a task changes."""
  yield
  torch.set_default_dtype(torch.float32)
  torch.set_default_device(None)
  torch.set_grad_enabled(True)


def test_without_a_mistake_it_trains(tmp_path, monkeypatch):
  monkeypatch.chdir(tmp_path)
  Path("good.py").write_text(PENDULUM)
  assert train.main(["task=good.py", *SMALL, "run_dir=run"]) == 0


def test_debug_shows_where_it_went_wrong(tmp_path, monkeypatch):
  monkeypatch.chdir(tmp_path)
  Path("bad.py").write_text(PENDULUM.replace(EFFORT, "1 / 0"))
  with pytest.raises(ValueError, match="in reward: ZeroDivisionError: division by zero") as error:
    train.main(["task=bad.py", *SMALL, "run_dir=run", "debug=true"])
  assert isinstance(error.value.__cause__, ZeroDivisionError)
