"""The C++ controller holds a simulated robot at home, in real time; no result depends on the load."""

import re
import shutil
import socket
import subprocess
from pathlib import Path

import numpy as np
import pytest

from examples.cpp_robot import run
from gpurobot.robot.controller import Controller
from gpurobot.robot.interface import Mode, State
from gpurobot.robot.simulated import HOST, LARGEST, Packet
from gpurobot.robot.udp import Simulation
from tests.gpurobot.robot.exports import write_export

pytestmark = pytest.mark.skipif(shutil.which("cmake") is None, reason="needs cmake")
FOLDER = Path(run.__file__).parent


@pytest.fixture(scope="module")
def built(tmp_path_factory):
  """Return the export of a policy with a clock that hardly moves, and its program."""
  export, build = tmp_path_factory.mktemp("export"), tmp_path_factory.mktemp("build")
  write_export(export, "walk", weights=0.1, header=True, robot="assets/quadruped/robot.xml", history_policy=2)
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


def test_its_targets_are_the_runners(built):
  """A robot that reports one state for ever gets the targets of each step of the gait's clock."""
  export, program = built
  controller, command = Controller(export), (0.5, -0.25, 0.125)
  joints, draw = sorted(controller.servos.joints), np.random.default_rng(0).uniform
  places, zeros = controller.robot_columns(joints), np.zeros(len(joints))
  angles = controller.servos.home[np.argsort(places["servos"])] + draw(-0.1, 0.1, len(joints))
  speeds, quaternion, gyro = draw(-1, 1, len(joints)), np.array([0.96, 0.2, -0.1, 0.1]), draw(-1, 1, 3)
  found = []
  with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as link:
    link.bind((HOST, 0))
    link.settimeout(60)
    words = [link.getsockname()[1], 0.2, *command, *joints]
    with subprocess.Popen([program, *map(str, words)]) as process:
      mode, (_, peer) = Mode.start, link.recvfrom(LARGEST)
      packet = [[Packet.state, 0.0], angles, speeds, zeros, quaternion, gyro]
      link.sendto(np.concatenate(packet).tobytes(), peer)
      while mode != Mode.damp:
        _, mode, *numbers = np.frombuffer(link.recv(LARGEST))
        found += [numbers[: len(joints)]] if mode == Mode.act else []
      process.kill()
  state = State(0.0, 0.0, angles, speeds, zeros, quaternion, gyro)
  wanted = [controller.step(state, places, np.array(command)).ctrl for _ in range(10)]
  np.testing.assert_allclose(np.array(found)[:, places["servos"]], wanted, atol=2e-6)


def test_a_robot_beyond_its_limits_ends_the_run(built, capfd):
  status, _ = run.run(*built, 1.0, Simulation(noise=100.0))  # of attitude and speeds: either may be first
  assert status == 1
  assert re.search("the run ended: (the trunk is tilted|a joint is too fast)", capfd.readouterr().out)


def test_a_silent_robot_is_named(built, capfd):
  status, _ = run.run(*built, 1.0, Simulation(loss=1.0))
  assert status == 2
  assert "the robot sends no message" in capfd.readouterr().err
