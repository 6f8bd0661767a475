"""Settings without the modules that declare them: they are those of the modules."""

import pytest

import tasks
from gpurobot.settings.config import leaves
from gpurobot.shell import declared
from gpurobot.shell.programs import PROGRAMS
from tasks.dm import TASKS

OVERRIDES = ("TRAIN", "PPO", "SAC", "TD3", "DISTILL")


def told(module) -> str:
  """Return all settings that a task's module declares, as text."""
  return str([leaves(module.Config()), *(getattr(module, part, None) for part in OVERRIDES)])


@pytest.mark.parametrize("name", [name for name in tasks.available() if not name.startswith("dm/")])
def test_a_task_has_the_settings_of_its_module(name):
  assert told(declared._Declared(tasks.module_name(name))) == told(tasks.load(name))


@pytest.mark.parametrize(("name", "program"), [item for item in PROGRAMS.items() if item[1].settings])
def test_so_has_a_program(name, program):
  found = getattr(declared._Declared(program.module), program.settings)
  expected = getattr(__import__(program.module, fromlist=[name]), program.settings)
  assert str(leaves(found())) == str(leaves(expected()))
  assert found.__doc__ == expected.__doc__


def test_every_module_of_a_task_is_found():
  assert {tasks.module_name(f"dm/{name}_{task}") for name, parts in TASKS.items() for task in parts} == {
    f"tasks.dm.{name.lower()}" for name in TASKS
  }
  assert tasks.module_name("mine.py") is tasks.module_name("antt") is None


def test_what_a_module_does_not_declare_is_an_error(monkeypatch):
  module = declared._Declared("tasks.ant")
  with pytest.raises(AttributeError, match=r"^module 'tasks\.ant' declares no 'nothing'$"):
    module.nothing  # noqa: B018
  with pytest.raises(ModuleNotFoundError, match=r"no module 'tasks\.nothing'"):
    declared._Declared("tasks.nothing")
