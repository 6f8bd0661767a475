"""The node of ROS 2, against a stand-in of rclpy: topics, a clock that the node advances, and its faults."""

import sys
from types import SimpleNamespace as Some
from unittest.mock import MagicMock, call

import numpy as np
import pytest

from gpurobot.robot import ros2
from gpurobot.robot.controller import Controller
from gpurobot.robot.keyboard import Commands
from gpurobot.robot.loop import Loop, Times
from gpurobot.robot.safety import Safety
from gpurobot.settings.config import ConfigError

TIMES = Times(seconds=1.0, start_seconds=1.0, stop_seconds=0.1, connect_seconds=1.0)
ANGLES = np.linspace(-0.2, 0.2, 13)


class Topics:
  """ROS 2 with a robot that stands still: `rclpy`, its node, publisher and clock in one."""

  def __init__(self):
    self.clock, self.sent, self.readers, self.names = 0.0, [], {}, []
    self.fault = lambda _time, _topic, message: message
    self.init = self.destroy_node = self.shutdown = self.calls = MagicMock()
    self.create_node = lambda _: self

  def create_subscription(self, _, topic, callback, __):
    self.readers[topic] = callback

  def create_publisher(self, _, topic, __):
    return Some(publish=lambda message: self.sent.append((topic, message.data)))

  def spin_once(self, _, timeout_sec):
    self.clock += timeout_sec
    stamp = Some(sec=int(self.clock), nanosec=round(self.clock % 1 * 1e9))
    joints = Some(header=Some(stamp=stamp), name=self.names, position=ANGLES, velocity=0 * ANGLES)
    joints.effort = np.full(13, np.nan)  # as a broadcaster fills in what it lacks
    imu = Some(orientation=Some(x=0.1, y=0.2, z=0.3, w=np.sqrt(0.86)), orientation_covariance=np.zeros(9))
    imu.angular_velocity = Some(x=0.01, y=0.02, z=0.03)
    twist = Some(linear=Some(x=0.5, y=-9.0, z=0.0), angular=Some(x=0.0, y=0.0, z=0.25))
    for topic, message in {"/joint_states": joints, ros2.Ros2().imu: imu, "/cmd_vel": twist}.items():
      if (heard := self.fault(self.clock, topic, message)) is not None:
        self.readers[topic](heard)


@pytest.fixture
def topics(monkeypatch):
  found = Topics()
  signals = Some(SignalHandlerOptions=Some(NO="no"))
  monkeypatch.setitem(sys.modules, "rclpy", found)
  monkeypatch.setitem(sys.modules, "rclpy.signals", signals)
  packages = [f"{kind}_msgs" for kind in ("geometry", "sensor", "std")]
  for name in ("rclpy.qos", *packages, *(f"{package}.msg" for package in packages)):
    monkeypatch.setitem(sys.modules, name, MagicMock(Float64MultiArray=Some))
  monkeypatch.setattr(ros2, "time", Some(perf_counter=lambda: found.clock))
  return found


def loop_of(export, topics):
  """Return a loop over the topics of a robot with its joints in another order, and one more of them."""
  controller = Controller(export)
  joints = controller.servos.joints
  topics.names = [*joints[::-1], "tail"]
  commands = Commands(controller.facts["commands"], [])
  robot = ros2.Ros2Robot(ros2.Ros2(joints=[*joints[1:], joints[0]]), joints, commands)
  return Loop(robot, controller, Safety(tilt=2.0), commands)


def test_topics_are_sensors_commands_and_targets(standing, topics):
  loop = loop_of(standing, topics)
  assert loop.run(TIMES, lambda: "") == "its time was over"
  state, row = loop.robot.read(), loop.rows[-1]
  own = dict(zip(topics.names, ANGLES, strict=True))
  assert state.angles.tolist() == [own[name] for name in loop.robot.joints]
  np.testing.assert_allclose(state.quaternion, [np.sqrt(0.86), 0.1, 0.2, 0.3])  # w first
  assert (state.gyro.tolist(), state.time) == ([0.01, 0.02, 0.03], pytest.approx(state.received))
  assert "robot.torques" not in row  # the robot does not measure them
  assert row["sensor.command"].tolist() == [0.5, -0.5, 0.25]  # as far as the range goes
  assert {topic for topic, _ in topics.sent} == {"/forward_position_controller/commands"}
  act, stop = topics.sent[-6][1], topics.sent[-1][1]
  home = dict(zip(loop.controller.servos.joints, loop.controller.servos.home, strict=True))
  np.testing.assert_allclose(act, [home[name] for name in loop.robot.joints], atol=1e-6)
  np.testing.assert_allclose(stop, state.angles)  # the stop holds the joints
  assert loop.robot.close() == ""
  assert topics.calls.mock_calls == [call(signal_handler_options="no"), call(), call()]


@pytest.mark.parametrize("topic", ["/joint_states", "/imu_sensor_broadcaster/imu"])
def test_a_topic_that_falls_silent_ends_the_run(topic, standing, topics):
  topics.fault = lambda time, name, message: None if name == topic and time > 1.5 else message
  reason = loop_of(standing, topics).run(TIMES, lambda: "")
  assert reason.startswith("its newest message is 0.1")


def test_an_old_velocity_command_no_longer_counts(standing, topics):
  topics.fault = lambda time, name, message: None if name == "/cmd_vel" and time > 1.2 else message
  loop = loop_of(standing, topics)
  loop.run(TIMES, lambda: "")
  moving = [row["time"] for row in loop.rows if row["sensor.command"].any()]
  assert 1.6 < max(moving) < 1.75


def _with(**parts):
  return lambda message: Some(**{**vars(message), **parts})


@pytest.mark.parametrize(
  ("topic", "change", "text"),
  [
    ("/joint_states", _with(velocity=[]), "no speeds"),
    ("/joint_states", _with(name=[f"{index}" for index in range(13)]), "no joint FR_thigh"),
    ("/imu_sensor_broadcaster/imu", _with(orientation_covariance=[-1.0]), "no attitude"),
  ],
)
def test_incomplete_messages_do_not_count(topic, change, text, standing, topics):
  topics.fault = lambda _, name, message: change(message) if name == topic else message
  loop = loop_of(standing, topics)
  with pytest.raises(ConfigError, match="sends no message in 1 s"):
    loop.run(TIMES, lambda: "")
  assert loop.robot.close() == f"messages of {topic} were ignored: there was {text} in them"


def test_torques_that_come_and_go_are_left_out_of_the_log(standing, topics, tmp_path):
  some = _with(effort=np.ones(13))
  topics.fault = lambda time, name, message: (
    some(message) if name == "/joint_states" and time < 1.5 else message
  )
  loop = loop_of(standing, topics)
  loop.write(tmp_path / "log.npz", loop.run(TIMES, lambda: ""))
  assert (loop.rows[0]["robot.torques"] == 1).all()
  log = np.load(tmp_path / "log.npz")
  assert len(log["robot.angles"]) == 50
  assert "robot.torques" not in log


def test_without_ros_a_line_says_so(monkeypatch):
  monkeypatch.setitem(sys.modules, "rclpy", None)
  with pytest.raises(ConfigError, match="rclpy is missing: source setup"):
    ros2.Ros2Robot(ros2.Ros2(), [], Commands([], []))
