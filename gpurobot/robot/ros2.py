"""Robot of ROS 2: sensors and velocity command from topics, targets to a controller of ros2_control.

The controller forwards positions to the joints' own servos, so gains are theirs: the soft start moves with
full gains, and the stop holds the joints where they are.
"""

import dataclasses
import time
from collections.abc import Sequence
from typing import Any

import numpy as np

from gpurobot.robot.interface import Command, Floats, Mode, State
from gpurobot.robot.keyboard import Commands
from gpurobot.settings.config import ConfigError, option


@dataclasses.dataclass
class Ros2:
  """Topics of a robot of ROS 2."""

  joint_states: str = option("/joint_states", "sensor_msgs/JointState, with speeds")
  imu: str = option("/imu_sensor_broadcaster/imu", "sensor_msgs/Imu, with the attitude")
  twist: str = option("/cmd_vel", "geometry_msgs/Twist: the velocity command")
  twist_age: float = option(0.5, "age after which a velocity command no longer counts", "s", low=0)
  targets: str = option("/forward_position_controller/commands", "std_msgs/Float64MultiArray of targets")
  joints: list[str] = option([], "their joints, as the controller's parameter; []: as policy.json's control")


class Ros2Robot:
  """Node of ROS 2 with the interface `Robot`."""

  def __init__(self, settings: Ros2, controls: Sequence[str], commands: Commands) -> None:
    """Start the node; `controls` are the policy's joints. Raises ConfigError without rclpy."""
    try:
      import rclpy  # noqa: PLC0415 (of ROS 2)
      from geometry_msgs.msg import Twist  # noqa: PLC0415
      from rclpy.qos import qos_profile_sensor_data as newest  # noqa: PLC0415
      from rclpy.signals import SignalHandlerOptions  # noqa: PLC0415
      from sensor_msgs.msg import Imu, JointState  # noqa: PLC0415
      from std_msgs.msg import Float64MultiArray  # noqa: PLC0415
    except ImportError as error:
      raise ConfigError(f"{error.name} is missing: source setup.bash of ROS 2, for its Python") from error
    self.joints = settings.joints or list(controls)
    self._settings, self._commands, self._start = settings, commands, time.perf_counter()
    self._moved: tuple[float, float, Floats, Floats, Floats] | None = None
    self._turned: tuple[float, Floats, Floats] | None = None
    self._commanded, self._held, self._ignored = np.inf, False, ""
    self._ros, self._message = rclpy, Float64MultiArray
    rclpy.init(signal_handler_options=SignalHandlerOptions.NO)  # Ctrl-C brakes, before the node ends
    self._node = node = rclpy.create_node("gpurobot")
    node.create_subscription(JointState, settings.joint_states, self._take_joints, newest)
    node.create_subscription(Imu, settings.imu, self._take_imu, newest)
    node.create_subscription(Twist, settings.twist, self._take_twist, 1)
    self._publisher = node.create_publisher(Float64MultiArray, settings.targets, 1)

  def read(self) -> State | None:
    """Return the newest message so far, as old as the older of its two parts; None before the first."""
    if self.now() - self._commanded > self._settings.twist_age:
      self._commands.set([])
      self._commanded = np.inf
    if self._moved is None or self._turned is None:
      return None
    (stamp, moved, *joints), (turned, *imu) = self._moved, self._turned
    return State(stamp, min(moved, turned), *joints, *imu)

  def write(self, command: Command) -> None:
    """Send the targets; in a stop, the angles that the joints had when it began."""
    if command.mode is not Mode.damp:
      self._targets = command.targets
    elif not self._held and self._moved is not None:
      self._held, self._targets = True, self._moved[2]
    self._publisher.publish(self._message(data=self._targets.tolist()))

  def now(self) -> float:
    """Return the controller's clock [s]."""
    return time.perf_counter() - self._start

  def wait(self, until: float) -> None:
    """Take messages until a time of the controller's clock [s]."""
    while True:
      self._ros.spin_once(self._node, timeout_sec=max(0.0, until - self.now()))
      if self.now() >= until:
        return

  def close(self) -> str:
    """End the node; return a line about messages that were ignored, or ""."""
    self._node.destroy_node()
    self._ros.shutdown()
    return self._ignored

  def _take_joints(self, message: Any) -> None:
    names, n = list(message.name), len(message.name)
    missing = [name for name in self.joints if name not in names]
    if missing or not len(message.position) == len(message.velocity) == n:
      what = f"no joint {missing[0]}" if missing else "no speeds"
      self._ignored = f"messages of {self._settings.joint_states} were ignored: there was {what} in them"
      return
    order = [names.index(name) for name in self.joints]
    angles, speeds = (np.array(part, np.float64)[order] for part in (message.position, message.velocity))
    torques = np.array(message.effort, np.float64)
    torques = torques[order] if len(torques) == n and np.isfinite(torques).all() else np.zeros(0)
    stamp = message.header.stamp
    self._moved = stamp.sec + 1e-9 * stamp.nanosec, self.now(), angles, speeds, torques

  def _take_imu(self, message: Any) -> None:
    if message.orientation_covariance[0] == -1:  # says that there is none
      self._ignored = f"messages of {self._settings.imu} were ignored: there was no attitude in them"
      return
    attitude, gyro = message.orientation, message.angular_velocity
    quaternion = np.array([attitude.w, attitude.x, attitude.y, attitude.z])
    self._turned = self.now(), quaternion, np.array([gyro.x, gyro.y, gyro.z])

  def _take_twist(self, message: Any) -> None:
    self._commands.set([message.linear.x, message.linear.y, message.angular.z])
    self._commanded = self.now()
