"""Tasks are found by name, dotted path or file; a wrong name is answered with the nearest."""

import sys
from pathlib import Path

import pytest

import tasks
from tasks.core.errors import TaskError

TASK = """
from dataclasses import dataclass
from tasks import base

@dataclass
class Config(base.Config):
  reward_one: float = base.option(1.0, "weight of one")

class Task(base.Task):
  robot = "<mujoco/>"
"""


def test_a_dotted_path_and_a_name_load_the_same_module():
  assert tasks.load("tasks.ant") is tasks.load("ant")


def test_tasks_of_one_module_differ_in_their_settings():
  walk, run = (tasks.load(f"dm/walker_{task}") for task in ("walk", "run"))
  assert (walk.Config().speed, run.Config().speed) == (1.0, 8.0)
  assert walk.Task is run.Task
  assert tasks.load("dm/walker_run") is run
  assert tasks.load("dm/humanoid_CMU_run").Config().substeps == 10


def test_a_file_loads_once_and_files_of_one_name_stay_apart(tmp_path: Path):
  files = [tmp_path / folder / "mine.py" for folder in ("a", "b")]
  for number, file in enumerate(files):
    file.parent.mkdir()
    file.write_text(TASK + f"NUMBER = {number}\n")
  modules = [tasks.load(str(file)) for file in files]
  assert [module.NUMBER for module in modules] == [0, 1]
  assert tasks.load(str(files[0])) is modules[0]


@pytest.mark.parametrize(
  ("wrong", "words"),
  [
    ("antt", ["'antt'", "nearest: ant"]),
    ("cart_pole", ["nearest: cartpole"]),
    ("gym/Humanoid-v4", ["nearest: gym/Humanoid-v5"]),
    ("zzz", ["available: ", "ant", "cartpole"]),
    ("no.such.module", ["'no.such.module'"]),
    ("no/such/file.py", ["'file.py'", "no/such"]),
    ("tasks.shared.quat", ["Config", "Task"]),
  ],
)
def test_a_wrong_name_is_answered_in_one_line(wrong: str, words: list[str]):
  with pytest.raises(TaskError) as caught:
    tasks.load(wrong)
  message = str(caught.value)
  assert "\n" not in message
  assert all(word in message for word in words)


def test_an_error_inside_a_task_file_is_its_own_and_leaves_nothing_behind(tmp_path: Path):
  file = tmp_path / "broken.py"
  file.write_text("import no_such_package\n")
  before = set(sys.modules)
  with pytest.raises(TaskError, match=r"broken\.py, line 1: ModuleNotFoundError: .*no_such_package"):
    tasks.load(str(file))
  assert not set(sys.modules) - before
