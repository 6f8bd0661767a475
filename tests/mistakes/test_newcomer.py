"""Mistakes of newcomers: each command ends with one line and status 2."""

import shlex

import pytest

import train
from gpurobot import own_packages
from gpurobot.shell import command
from tests.mistakes.newcomer import FILES, MISTAKES
from tests.mistakes.told import SMALL, told

pytestmark = pytest.mark.usefixtures("keep_signal_handlers")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
  """A newcomer's folder, with a run of a small task."""
  folder = tmp_path_factory.mktemp("newcomer")
  for name, text in FILES.items():
    (folder / name).parent.mkdir(exist_ok=True)
    (folder / name).write_text(text)
  train.main(["task=cartpole", *SMALL[1:], "num_envs=64", "device=cpu", f"run_dir={folder / 'run'}"])
  return folder


@pytest.mark.parametrize(("words", "message"), MISTAKES.items(), ids=range(len(MISTAKES)))
def test_of_a_newcomer(words, message, folder, monkeypatch, capsys):
  monkeypatch.chdir(folder)
  monkeypatch.setattr(own_packages, "prefer", lambda: None)  # the tests' own
  monkeypatch.setattr("sys.argv", ["gpurobot"])
  monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
  assert told(capsys, command.main, shlex.split(words)).startswith(message)
