"""Robot of `simulated.py` that speaks Unitree's messages on the loopback, in real time."""

import json
import select
import sys
import time

import numpy as np

from gpurobot.robot import simulated
from gpurobot.robot.interface import Mode
from gpurobot.robot.unitree_messages import MOTORS, Link

TEMPERATURE = 30  # that its motors report [°C]


def speak(robot: simulated.Simulated) -> None:
  """Print the joints, and exchange messages until standard input is closed.

  Messages have no mode: the trunk is held for the time of the soft start after the first command.
  """
  own = robot.settings["unitree"]
  motors = MOTORS[own["package"]]
  names = [name.removesuffix("_joint") for name in robot.joints]
  joints = [index for index, name in enumerate(names) if name in motors]
  slots = [motors.index(names[index]) for index in joints]
  if not joints:
    print(json.dumps({"error": f"it has no joint of this robot: {', '.join(motors)}"}), flush=True)
    return
  link = Link(own["package"], "LowState_", "LowCmd_", own["network"])
  print(json.dumps({"joints": robot.joints}), flush=True)
  start, begun = time.perf_counter(), np.inf
  while True:
    ready, _, _ = select.select([sys.stdin], [], [], robot.settings["step"])
    if ready and not sys.stdin.readline():
      return
    if (record := link.newest()) is not None:
      begun = min(begun, robot.data.time)
      mode = Mode.act if robot.data.time - begun >= robot.settings["start_seconds"] else Mode.start
      command = np.zeros((3, len(names)))
      for row, field in zip(command, ("q", "kp", "kd"), strict=True):
        row[joints] = (record["motor_cmd"][field] * (record["motor_cmd"]["mode"] == 1))[slots]
      robot.receive(np.concatenate([[simulated.Packet.command, mode], command.ravel()]))
    start = max(start, time.perf_counter() - robot.data.time - simulated.BEHIND)
    for packet in robot.advance(time.perf_counter() - start)[-1:]:  # encoding takes 1 to 2 ms
      _report(link, packet, joints, slots)


def _report(link: Link, packet: simulated.Floats, joints: list[int], slots: list[int]) -> None:
  """Send what the sensors measured."""
  state, (angles, speeds, torques) = link.written, packet[2:-7].reshape(3, -1)
  state["tick"] = round(1e3 * packet[1])
  state["imu_state"]["quaternion"], state["imu_state"]["gyroscope"] = packet[-7:-3], packet[-3:]
  for field, numbers in {"q": angles, "dq": speeds, "tau_est": torques}.items():
    state["motor_state"][field][slots] = numbers[joints]
  state["motor_state"]["temperature"] = TEMPERATURE
  link.write()
