"""Simulated robot: servos, sensors, delay and loss, and its file."""

import dataclasses
import math

import numpy as np
import pytest

from gpurobot.robot.interface import Mode
from gpurobot.robot.simulated import Packet, Simulated
from gpurobot.robot.udp import Simulation

MOTOR = """<mujoco><worldbody>{floor}<body name="trunk" pos="0 0 1"><freejoint/><geom size="0.1" mass="1"/>
  <body><joint name="hip" axis="0 1 0" {joint}/><geom pos="0.2 0 0" size="0.05" mass="1"/></body></body>
  </worldbody><actuator>{actuator}</actuator></mujoco>"""


def robot(tmp_path, floor="", joint="", actuator="", **settings):
  """Return a robot with one joint, without defects unless they are given."""
  (tmp_path / "robot.xml").write_text(MOTOR.format(floor=floor, joint=joint, actuator=actuator))
  perfect = {"noise": 0.0, "delay": 0.0, "start_angle": 0.0, "model": str(tmp_path / "robot.xml")}
  given = dataclasses.asdict(Simulation()) | perfect | settings
  return Simulated(given | {"home": {"hip": 0.1, "other": 1.0}, "root": [0, 0, 1, 1, 0, 0, 0]})


def command(mode, target, kp, kd):
  return np.array([Packet.command, mode, target, kp, kd])


def test_servos_hold_a_joint_while_the_trunk_is_held(tmp_path):
  found = robot(tmp_path)
  assert found.measure()[2] == 0.1
  found.receive(command(Mode.start, 0.5, 100, 5))
  packets = found.advance(2.0)
  assert len(packets) == 1001  # 500 a second
  kind, time, angle, speed, torque, *attitude = packets[-1]
  assert (kind, time) == (Packet.state, pytest.approx(2.0))
  assert torque == pytest.approx(100 * (0.5 - angle) - 5 * speed, abs=1e-2)
  assert torque == pytest.approx(-9.81 * 0.2 * math.cos(angle), rel=0.01)  # against gravity
  assert attitude == [1, 0, 0, 0, 0, 0, 0]
  found.receive(command(Mode.act, 0.5, 100, 5))
  found.advance(3.0)
  assert found.data.qpos[2] < 0.2  # it lies on the floor that the file lacks
  assert found.summary()["upright"] < 1


@pytest.mark.parametrize(
  ("joint", "actuator", "limit"),
  [
    ("", "", math.inf),
    ("", '<position joint="hip" forcerange="-3 3"/>', 3),
    ("", '<motor joint="hip" ctrlrange="-2 2" gear="2"/>', 4),
    ('actuatorfrcrange="-1 1"', '<motor joint="hip" ctrlrange="-2 2"/>', 1),
  ],
)
def test_torque_is_limited_as_the_file_says(joint, actuator, limit, tmp_path):
  found = robot(tmp_path, joint=joint, actuator=actuator, torque=0.5)
  found.receive(command(Mode.start, 9.0, 1000, 0))
  found.advance(0.001)
  assert found.torques[0] == min(1000 * 8.9, 0.5 * limit)


def test_messages_and_commands_are_late_or_lost(tmp_path):
  found = robot(tmp_path, delay=0.01)
  found.receive(command(Mode.start, 0.5, 100, 5))
  assert found.advance(0.01) == []
  assert found.torques[0] == 0
  packet = found.advance(0.012)[0]
  assert packet[1] == pytest.approx(0.001)
  assert found.torques[0] > 0
  counts = [len(robot(tmp_path, loss=share).advance(2.0)) for share in (0.3, 1.0)]
  assert 640 < counts[0] < 760
  assert counts[1] == 0


def test_sensors_are_noisy_and_joints_rub(tmp_path):
  noisy = np.array([robot(tmp_path, noise=2.0, seed=seed).measure() for seed in range(400)])
  deviations = noisy.std(0)
  assert deviations[2:4] == pytest.approx([0.006, 0.6], rel=0.2)
  assert deviations[6:9] == pytest.approx(0.01, rel=0.2)  # half of an attitude's angle, 0.02
  assert deviations[9:] == pytest.approx(0.1, rel=0.2)
  np.testing.assert_allclose(np.linalg.norm(noisy[:, 5:9], axis=1), 1)
  stuck = robot(tmp_path, friction=5.0)
  stuck.advance(1.0)
  assert stuck.data.qpos[7] == pytest.approx(0.1, abs=0.06)  # MuJoCo's friction creeps
  assert robot(tmp_path, floor='<geom type="plane" size="1 1 1"/>').mj.ngeom == 3


def test_a_simulation_that_diverges_reports_it(tmp_path):
  found = robot(tmp_path, hold=False)
  found.receive(command(Mode.act, 0.5, 1e12, 0))
  assert not np.isfinite(found.advance(1.0)[-1]).all()


def test_a_robot_that_is_fixed_is_refused(tmp_path):
  (tmp_path / "arm.xml").write_text("<mujoco><worldbody><geom size='1'/></worldbody></mujoco>")
  settings = dataclasses.asdict(Simulation()) | {"model": str(tmp_path / "arm.xml")}
  with pytest.raises(ValueError, match="no free joint"):
    Simulated(settings)
