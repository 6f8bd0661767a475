"""Wheel: built, installed, and used where a user's own folders have the names of gpurobot's packages."""

import os
import subprocess
import sys
import tomllib

import pytest

import tasks
from tests.lacking import lacking
from tests.planted import plant, ran
from tests.test_house import ROOT

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]


def pip(*words):
  command = [sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check", *words]
  return subprocess.run(command, check=False, capture_output=True, text=True)


@pytest.fixture(scope="module")
def installed(tmp_path_factory):
  """A folder with the wheel's files, as pip installs them; what it depends on is in this environment."""
  wheels, folder = tmp_path_factory.mktemp("wheels"), tmp_path_factory.mktemp("installed")
  built = pip("wheel", "--no-deps", "--wheel-dir", str(wheels), str(ROOT))
  if "No matching distribution found for hatchling" in built.stderr:
    lacking("needs a package registry that has hatchling")
  assert built.returncode == 0, built.stderr
  (wheel,) = wheels.iterdir()
  assert wheel.stat().st_size < 2.1e6  # the demos are 0.7 of it
  done = pip("install", "--no-deps", "--no-compile", "--target", str(folder), str(wheel))
  assert done.returncode == 0, done.stderr
  return folder


@pytest.fixture(scope="module")
def gpurobot(installed, tmp_path_factory):
  """Return how to run the command of the wheel, in a folder with folders named as its packages."""
  place = tmp_path_factory.mktemp("user")
  for name in ("assets", "physics", "tasks"):
    (place / name).mkdir()
    (place / name / "__init__.py").write_text("raise ValueError('the code of the user')")
  plant(place)

  def run(*words):
    done = subprocess.run(
      [installed / "bin" / "gpurobot", *words],
      cwd=place,
      env=os.environ | {"PYTHONPATH": str(installed)},
      check=False,
      capture_output=True,
      text=True,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()

  run.place = place
  return run


def test_it_holds_what_a_user_needs(installed):
  names = {path.name for path in installed.iterdir()}
  info = f"gpurobot-{PROJECT['version']}.dist-info"
  assert names == {"assets", "bin", "gpurobot", "physics", "tasks", "train.py", info}
  assert (installed / info / "licenses" / "LICENSE").read_text() == (ROOT / "LICENSE").read_text()
  robots = {path.relative_to(ROOT) for path in ROOT.glob("assets/*/*.xml")}
  assert {path.relative_to(installed) for path in installed.glob("assets/*/*.xml")} == robots


def test_it_runs_among_folders_of_the_same_names(gpurobot):
  assert gpurobot("--version") == [f"gpurobot {PROJECT['version']}"]
  assert gpurobot("tasks") == tasks.available()
  training = gpurobot(
    "train", "task=cartpole", "num_envs=64", "max_iterations=2", "record_every=2", "run_dir=run"
  )
  assert training[-1] == "  continue  gpurobot train resume=run"
  assert ran(gpurobot.place) == ""
