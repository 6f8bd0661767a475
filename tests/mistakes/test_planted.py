"""A folder that one was given has modules in it: no program runs them, and no process that it starts."""

import os
import subprocess
import sys

import pytest

from benchmarks.parity.worker import Worker
from gpurobot.device import process
from gpurobot.viewer import offscreen
from tests.mistakes.told import SMALL
from tests.planted import AFTER_START, plant, ran
from tests.test_house import ROOT

TRAINING = ["task=cartpole", *SMALL, "device=cpu", "run_dir=."]


def run(folder, *words):
  """Run Python in a folder, which an empty entry of PYTHONPATH names; return what it says on errors."""
  environment = os.environ | {"PYTHONPATH": f":{ROOT}"}
  done = subprocess.run(
    [sys.executable, *words], cwd=folder, env=environment, check=False, capture_output=True, text=True
  )
  assert done.returncode == 0, done.stderr
  return done.stdout + done.stderr


@pytest.fixture
def surrounded(tmp_path, monkeypatch):
  """A working directory with planted modules, which an empty entry of PYTHONPATH names."""
  plant(tmp_path)
  monkeypatch.chdir(tmp_path)
  monkeypatch.setenv("PYTHONPATH", "")
  monkeypatch.setenv("PYTHONPATH", f"{os.pathsep}{ROOT}{os.pathsep}")
  return tmp_path


def test_a_sweep_its_trials_and_their_videos_run_none(tmp_path):
  """`python -m` has Python look in the working directory, and so has the empty entry."""
  plant(tmp_path, AFTER_START)
  run(tmp_path, "-m", "gpurobot", "sweep", *TRAINING[:-1], "record_every=1", "folder=.")
  assert (tmp_path / "seed=0" / "summary.json").exists()
  assert (tmp_path / "seed=0" / "videos").exists()
  assert ran(tmp_path) == ""


def test_the_probe_of_a_renderer_runs_none(surrounded):
  assert not offscreen.draws("none")
  offscreen.draws("egl")
  assert ran(surrounded) == ""


def test_a_worker_of_the_survey_runs_none(surrounded, monkeypatch):
  monkeypatch.setenv("PYTHONPATH", str(ROOT))
  monkeypatch.setenv("PYTHONSAFEPATH", "")
  worker = Worker(60)
  monkeypatch.setattr(sys, "path", [entry for entry in sys.path if entry])
  assert worker.run(os.getcwd) == str(surrounded)
  worker.stop()
  assert ran(surrounded) == ""


def test_a_process_finds_what_pythonpath_names_and_the_places_it_is_given(tmp_path, monkeypatch):
  for name in ("named", "placed"):
    (tmp_path / name).mkdir()
    (tmp_path / name / f"{name}.py").touch()
  monkeypatch.setenv("PYTHONPATH", f":{tmp_path / 'named'}:")
  code = "import named, placed, gpurobot, sys; print(gpurobot.__file__, '' in sys.path)"
  words, environment = process.python("-c", code, places=[str(tmp_path / "placed")])
  assert subprocess.check_output(words, env=environment, text=True) == f"{ROOT}/gpurobot/__init__.py False\n"
