"""The C++ controller holds a simulated robot at home, in real time; no result depends on the load."""

import re
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest

from examples.cpp_robot import run
from gpurobot.robot.udp import Simulation
from tests.gpurobot.robot.exports import write_export

pytestmark = pytest.mark.skipif(shutil.which("cmake") is None, reason="needs cmake")
FOLDER = Path(run.__file__).parent


@pytest.fixture(scope="module")
def built(tmp_path_factory):
  """Return the export of a policy that acts zero, and its program."""
  export, build = tmp_path_factory.mktemp("export"), tmp_path_factory.mktemp("build")
  write_export(export, "quadruped", header=True)
  patient = "-DCMAKE_CXX_FLAGS=-DSTALE=60.0 -DLATE=60.0"
  subprocess.run(["cmake", "-S", FOLDER, "-B", build, f"-DEXPORT={export}", patient], check=True)
  subprocess.run(["cmake", "--build", build], check=True)
  return export, build / "robot"


def test_a_robot_stands(built, capfd):
  status, way = run.run(*built, 1.0, Simulation())
  ahead, left = (float(word) for word in way.split() if word.lstrip("-")[0].isdigit())
  assert status == 0
  assert "its time was over" in capfd.readouterr().out
  assert np.hypot(ahead, left) < 0.3


def test_a_robot_beyond_its_limits_ends_the_run(built, capfd):
  status, _ = run.run(*built, 1.0, Simulation(noise=100.0))  # of attitude and speeds: either may be first
  assert status == 1
  assert re.search("the run ended: (the trunk is tilted|a joint is too fast)", capfd.readouterr().out)


def test_a_silent_robot_is_named(built, capfd):
  status, _ = run.run(*built, 1.0, Simulation(loss=1.0))
  assert status == 2
  assert "the robot sends no message" in capfd.readouterr().err
