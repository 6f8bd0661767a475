"""Stages of a run, every fault that ends it, and its log."""

import dataclasses
import json
import math

import numpy as np
import pytest

from gpurobot.robot.controller import Controller
from gpurobot.robot.interface import Mode
from gpurobot.robot.keyboard import Commands
from gpurobot.robot.loop import Loop, Times
from gpurobot.robot.safety import Safety
from gpurobot.settings.config import ConfigError
from tests.gpurobot.robot.exports import Still

TIMES = Times(seconds=1.0, start_seconds=1.0, stop_seconds=0.2, connect_seconds=1.0)
LATER = 101.5  # robot's clock in the midst of the policy's stage


def loop_of(export, fault=lambda state: state, **safety):
  """Return a loop for a robot with joints 0.3 rad from home, one of them moved by no policy."""
  controller = Controller(export)
  joints = [*controller.servos.joints[::-1], "tail"]
  robot = Still(joints, np.append(controller.servos.home[::-1], 0.1) + 0.3, fault)
  return Loop(robot, controller, Safety(**safety), Commands(controller.facts["commands"], []))


def test_a_run_starts_softly_and_ends_braked(standing):
  loop = loop_of(standing)
  first, home = loop.robot.angles, loop.controller.servos.home[::-1]
  assert loop.run(TIMES, lambda: "") == "its time was over"
  stages = {mode: [one for one in loop.robot.commands if one.mode is mode] for mode in Mode}
  assert [len(stages[mode]) for mode in (Mode.start, Mode.act, Mode.damp)] == [50, 50, 10]
  moves = np.diff([first, *(one.targets for one in stages[Mode.start])], axis=0)
  assert abs(moves).max() < 0.0061
  np.testing.assert_allclose(stages[Mode.start][-1].targets, [*home, first[-1]])
  stiffness = [one.kp[0] for one in stages[Mode.start]]
  assert stiffness[0] < 2
  assert stiffness == sorted(stiffness)
  assert stiffness[-1] == 35
  np.testing.assert_allclose(stages[Mode.act][-1].targets, [*home, first[-1]], atol=1e-6)
  assert all(one.kp.any() == 0 and (one.kd == 2).all() for one in stages[Mode.damp])
  assert "50 control steps of 20 ms, late by 0.00 ms in the mean" in loop.jitter()


def when(**change):
  """Return a fault that changes the robot's messages after a while."""
  return lambda state: dataclasses.replace(state, **change) if state.time > LATER else state


TILTED = np.array([math.cos(0.6), math.sin(0.6), 0, 0])
FAULTS = {
  "its newest message is 0.110 s old, more than safety.age=0.1": when(received=1.49),
  "the trunk is tilted by 1.20 rad, more than safety.tilt=1": when(quaternion=TILTED),
  "a joint moves at 50.0 rad/s, more than safety.speed=40": when(speeds=np.full(13, -50.0)),
  "the trunk is tilted by nan rad, more than safety.tilt=1": when(quaternion=np.zeros(4)),
  "a motor has 81 °C, more than safety.temperature=80": when(temperatures=np.append(np.zeros(12), 81.0)),
  "the robot reports a number that is not finite: gyro": when(gyro=np.array([0, np.nan, 0])),
  "the robot reports a number that is not finite: angles": when(angles=np.full(13, np.inf)),
}


@pytest.mark.parametrize("reason", FAULTS)
def test_a_fault_of_the_robot_ends_the_run_braked(reason, standing):
  loop = loop_of(standing, FAULTS[reason])
  assert loop.run(TIMES, lambda: "") == reason
  assert {one.mode for one in loop.robot.commands[-10:]} == {Mode.damp}
  assert loop.robot.commands[-11].mode is Mode.act


def test_a_late_loop_ends_the_run(standing):
  loop = loop_of(standing)
  loop.robot.slow = lambda until: 0.2 if 1.5 < until < 1.53 else 0.0
  assert loop.run(TIMES, lambda: "") == "a control step was 0.200 s late, more than safety.late=0.1"
  assert loop.robot.commands[-1].mode is Mode.damp


def test_a_number_of_the_policy_that_is_not_finite_ends_the_run(standing, monkeypatch):
  loop = loop_of(standing)
  monkeypatch.setattr(loop.controller, "_act", lambda _: np.full(12, np.nan))
  assert loop.run(TIMES, lambda: "") == "a number of the policy is not finite: action"
  assert Mode.act not in {one.mode for one in loop.robot.commands}


def test_keys_command_and_stop(standing):
  loop = loop_of(standing)
  keys = iter([*50 * " ", "w", "w", "a", "", "x"])  # the first ones come in the soft start
  assert loop.run(TIMES, lambda: next(keys)) == "a key was pressed"
  assert loop.commands.values == pytest.approx([0.4, 0.1, 0])
  loop.commands.press("sssssssssse")
  assert loop.commands.values == pytest.approx([-1, 0.1, -0.2])
  assert loop_of(standing).run(TIMES, lambda: "x") == "a key was pressed"
  loop.commands.press(" ")
  assert not loop.commands.values.any()


def test_an_interrupt_and_an_error_brake_too(standing):
  def interrupt():
    raise KeyboardInterrupt

  def fail():
    raise RuntimeError("no keys")

  loop = loop_of(standing)
  assert loop.run(TIMES, interrupt) == "Ctrl-C was pressed"
  loop = loop_of(standing)
  with pytest.raises(RuntimeError, match="no keys"):
    loop.run(TIMES, fail)
  assert loop.robot.commands[-1].mode is Mode.damp


def test_a_silent_robot_is_told_of(standing):
  loop = loop_of(standing, lambda _: None)
  with pytest.raises(ConfigError, match="sends no message in 1 s"):
    loop.run(TIMES, lambda: "")


def test_targets_are_limited(standing):
  loop = loop_of(standing)
  loop.controller._offset = loop.controller._offset + 9.0
  loop.run(TIMES, lambda: "")
  np.testing.assert_allclose(loop.robot.commands[-11].targets[:-1], loop.controller.servos.high[::-1])
  loop = loop_of(standing, torque=0.1)
  loop.controller._offset = loop.controller._offset + 0.5
  loop.run(TIMES, lambda: "")
  command = loop.robot.commands[-11]
  asked = 35 * (command.targets - loop.robot.angles)[:-1]
  np.testing.assert_allclose(abs(asked).max(), 0.1 * 35.55)


def test_the_log_has_every_step(standing, tmp_path):
  loop = loop_of(standing)
  reason = loop.run(TIMES, lambda: "")
  loop.write(tmp_path / "a" / "log.npz", reason)
  log = np.load(tmp_path / "a" / "log.npz")
  facts = json.loads(str(log["manifest"]))
  shapes = {name: log[name].shape for name in log.files}
  sensors = {f"sensor.{one['name']}": (50, len(one["columns"])) for one in facts["sensors"]}
  assert shapes == sensors | {
    "manifest": (), "reason": (), "time": (50,), "sensor_time": (50,), "obs": (50, 94), "action": (50, 12),
    "ctrl": (50, 12), "gains": (50, 2, 12), "robot.joints": (13,), "robot.angles": (50, 13),
    "robot.speeds": (50, 13), "robot.torques": (50, 13), "robot.quaternion": (50, 4), "robot.gyro": (50, 3),
  }  # fmt: skip
  np.testing.assert_allclose(np.diff(log["time"]), 0.02)
  np.testing.assert_allclose(log["sensor_time"] - log["time"], 100)
  np.testing.assert_allclose(log["obs"][1:, :47], log["obs"][:-1, 47:])  # two observations, the oldest first
  offsets = log["sensor.angles"] - loop.controller.servos.home
  np.testing.assert_allclose(offsets, 0.3)
  assert log["robot.joints"][-1] == "tail"
  assert log["gains"][0, :, 0].tolist() == [35, 0.5]
