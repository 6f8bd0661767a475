"""From a robot's file to a log that is diagnosed: the commands of docs/robot.md, one after the other.

The training is too short for a robot to walk, so the walking is the demo's. The robot is another process, in
simulated time: no result depends on the machine's load.
"""

import re
import sys

import numpy as np
import pytest

from gpurobot.robot.controller import Controller
from gpurobot.shell.command import main as gpurobot
from tests.test_house import ROOT

pytestmark = [pytest.mark.usefixtures("keep_signal_handlers"), pytest.mark.xdist_group("journey")]
DEFECTS = ["sim.realtime=false", "sim.friction=0.2", "sim.delay=0.005", "sim.noise=1", "start_seconds=1"]
CLEAN = "nothing differs from the training"


@pytest.fixture(autouse=True, scope="module")
def _argv():
  """Restore the words of the command line, which the command replaces."""
  with pytest.MonkeyPatch.context() as patch:
    patch.setattr(sys, "argv", [*sys.argv])
    yield


@pytest.fixture(scope="module")
def demo(tmp_path_factory):
  """Return the export of a policy that walks."""
  folder = tmp_path_factory.mktemp("demo")
  gpurobot(["export", "demo=quadruped", f"folder={folder}"])
  return folder


def walked(export, log, capsys, *words):
  """Run a policy for some seconds; return the robot's way ahead [m], and the first finding in the log."""
  gpurobot(["run", str(export), "command=[0.5,0,0]", *DEFECTS, f"log={log}", *words])
  printed = capsys.readouterr().out
  assert "the run ended: its time was over" in printed
  assert "and lies" not in printed
  gpurobot(["check", str(log), f"policy={export}"])
  way = re.search(r"the simulated robot is (\S+) m ahead", printed)
  return float(way[1]), capsys.readouterr().out.splitlines()[0]


def test_a_robots_file_becomes_a_policy_on_a_robot(tmp_path, capsys):
  robot = ROOT / "assets" / "quadruped" / "robot.xml"
  run = tmp_path / "run"
  small = ["num_envs=32", "max_iterations=2", "threads=1"]
  gpurobot(["train", "task=walk", f"env.robot={robot}", f"run_dir={run}", *small])
  gpurobot(["evaluate", str(run), "engine=mujoco", "episodes=2", "num_envs=2"])
  assert "velocity_error" in capsys.readouterr().out
  gpurobot(["export", str(run)])
  found = {path.name for path in (run / "export").iterdir()}
  assert found >= {"policy.json", "policy.onnx", "policy.pt", "policy.hpp", "robot.xml"}
  way, first = walked(run / "export", tmp_path / "walk.npz", capsys, "seconds=3")
  assert abs(way) < 1  # it has hardly learnt to move
  assert first == CLEAN
  gravity = np.load(tmp_path / "walk.npz")["sensor.gravity"]
  assert (gravity[:, 2] < -0.9).all()  # it stands


def test_a_trained_policy_walks_with_friction_delay_and_noise(demo, tmp_path, capsys):
  way, first = walked(demo, tmp_path / "walk.npz", capsys, "seconds=6")
  assert 2.4 < way < 3.6  # 3 m are commanded
  assert first == CLEAN


def one_knee_reversed(controller, state, *given):
  """Measure as `Controller` does, but for the sign of a knee."""
  sensors = measure(controller, state, *given)
  knee = controller.columns["angles"].index("FL_calf")
  signs = np.where(np.arange(12) == knee, -1, 1)
  return sensors | {name: signs * sensors[name] for name in ("angles", "speeds")}


measure = Controller._measure


@pytest.mark.parametrize(
  ("word", "named"),
  [("sim.torque=0.25", "1. torques saturated: "), ("sim.delay=0.03", "1. commands late: ")],
)
def test_a_fault_of_the_robot_is_named_first(word, named, demo, tmp_path, capsys):
  _, first = walked(demo, tmp_path / "fault.npz", capsys, word)
  assert first.startswith(named)


def test_a_fault_of_the_controller_is_named_first(demo, tmp_path, monkeypatch, capsys):
  monkeypatch.setattr(Controller, "_measure", one_knee_reversed)
  named = "1. sign of a joint flipped in the sensors: FL_calf of angles"
  _, first = walked(demo, tmp_path / "fault.npz", capsys)
  assert first.startswith(named)
