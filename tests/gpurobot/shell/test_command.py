"""The command `gpurobot`: what it starts, what it says, and how little it loads for that."""

import contextlib
import subprocess
import sys
from importlib import metadata
from types import SimpleNamespace

import pytest

import tasks
from gpurobot.shell import command
from gpurobot.shell.programs import PROGRAMS
from tests.test_house import ROOT


def run(*words, cwd=ROOT):
  """Run `python -m gpurobot` in a folder."""
  return subprocess.run(
    [sys.executable, "-m", "gpurobot", *words], cwd=cwd, check=False, capture_output=True, text=True
  )


@pytest.mark.parametrize("words", [[], ["--help"]])
def test_it_lists_every_program_with_what_it_is_for(words, capsys):
  assert command.main(words) is None
  lines = capsys.readouterr().out.splitlines()
  assert lines[0] == "usage: gpurobot <program> [key=value ...]"
  assert "  doctor      check the installation" in lines
  assert [line.split()[0] for line in lines if line.startswith("  ")] == list(PROGRAMS)


def test_every_program_is_in_the_list():
  """A program is a file that runs when it is started; each has a `main`."""
  files = [
    path for path in (ROOT / "gpurobot").rglob("[!_]*.py") if '__name__ == "__main__"' in path.read_text()
  ]
  assert {path.stem for path in files} | {"train"} == set(PROGRAMS)


def test_it_says_its_version(capsys):
  assert command.main(["--version"]) is None
  assert capsys.readouterr().out == f"gpurobot {metadata.version('gpurobot')}\n"


def test_without_an_installation_it_says_where_it_lies(monkeypatch, capsys):
  def find_none(name):
    raise metadata.PackageNotFoundError(name)

  monkeypatch.setattr(metadata, "version", find_none)
  command.main(["--version"])
  assert capsys.readouterr().out == f"gpurobot in {ROOT}, not installed\n"


def test_a_word_that_is_no_program_ends_in_one_line(capsys):
  """Others are in `tests/mistakes/newcomer.py`."""
  with pytest.raises(SystemExit, match="2"):
    command.main(["task=ant"])
  message = "'task=ant' comes after the name of a program: gpurobot train task=ant"
  assert capsys.readouterr() == ("", f"error: {message}\n")


def test_a_program_gets_the_words_after_its_name_and_gives_the_exit_status(monkeypatch):
  heard = []
  monkeypatch.setitem(sys.modules, "train", SimpleNamespace(main=lambda words: heard.append(words) or 143))
  monkeypatch.setattr(sys, "argv", ["gpurobot", "train", "task=ant", "seed=1"])
  assert command.main() == 143
  assert heard == [["task=ant", "seed=1"]]


@pytest.mark.parametrize("program", ["train", "evaluate"])
def test_the_help_of_a_program_shows_how_it_was_called(program, monkeypatch, capsys):
  monkeypatch.setattr(sys, "argv", ["gpurobot"])
  with contextlib.suppress(SystemExit):  # train's help ends it
    command.main([program, "--help"])
  assert capsys.readouterr().out.startswith(f"usage: gpurobot {program} [")


MODULES = [tasks.module_name(name) for name in tasks.available()]
HELP = ["train", *(name for name, program in PROGRAMS.items() if program.settings)]
LINES = ["gpurobot train t", "gpurobot train env.", "gpurobot evaluate e", "gpurobot demo "]
QUICK = f"""
import sys
from gpurobot.shell.command import main
main(["tasks"])
assert not {{"omegaconf", "numpy"}} & {{*sys.modules}}
from gpurobot.shell import completion, declared
[*map(completion.candidates, {LINES})]
[main([name, "--help"]) for name in {HELP}]
[declared.read(name).Config() for name in {MODULES}]
print({{"torch", "tensordict", "warp", "mujoco", "gymnasium"}} & {{*sys.modules}})
"""


def test_lists_completions_help_and_settings_need_no_library():
  """A shell asks at every press of a key."""
  done = subprocess.run([sys.executable, "-c", QUICK], check=True, capture_output=True, text=True)
  *told, libraries = done.stdout.splitlines()
  assert told[: len(tasks.available())] == tasks.available()
  assert done.stdout.count("usage: gpurobot ") == len(HELP)
  assert libraries == "set()"


def test_a_users_folders_of_the_same_names_do_not_get_in_the_way(tmp_path):
  for name in ("tasks", "physics", "train"):
    (tmp_path / name).mkdir()
    (tmp_path / name / "__init__.py").write_text("raise ValueError('the code of the user')")
  assert run("tasks", cwd=tmp_path).stdout.splitlines() == tasks.available()
  assert run("tain", cwd=tmp_path).stderr == "error: there is no program 'tain'; the nearest is 'train'\n"
  module = subprocess.run(
    [sys.executable, "-m", "gpurobot.tasks"], cwd=tmp_path, check=True, capture_output=True, text=True
  )
  assert module.stdout.splitlines() == tasks.available()


def test_a_users_program_keeps_its_own_tasks(tmp_path):
  (tmp_path / "tasks.py").write_text("mine = True")
  (tmp_path / "mine.py").write_text("import gpurobot, tasks; print(tasks.mine)\nimport gymnasium")
  done = subprocess.run(
    [sys.executable, str(tmp_path / "mine.py")], check=False, capture_output=True, text=True
  )
  assert done.stdout == "True\n"
  assert done.stderr.splitlines()[-1] == (
    f"ImportError: gpurobot needs its own package 'tasks', which {tmp_path / 'tasks.py'} hides: rename that"
  )
