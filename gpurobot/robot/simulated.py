"""Robot in MuJoCo, in a process of its own that speaks UDP on the loopback.

It prints its port and its joints as a line of JSON. Its packets are float64 numbers, the first of them a
`Packet`. It ends when its standard input is closed, with a line of JSON about the robot's place.
"""

import json
import math
import select
import socket
import sys
import time
from collections import deque
from collections.abc import Callable
from enum import IntEnum
from typing import Any

import mujoco
import numpy as np

from gpurobot.robot.interface import Floats, Mode

HOST = "127.0.0.1"
LARGEST = 65536  # of a packet [bytes]
HELD = 1e6  # mass and inertia of a trunk that is held [kg, kg m^2]
BEHIND = 0.1  # time after which a slow simulation stops catching up [s]
# Standard deviations of the sensors' noise at noise=1.
NOISE = {"angles": 0.003, "speeds": 0.3, "attitude": 0.01, "gyro": 0.05}  # rad, rad/s, rad, rad/s
SCALAR = (mujoco.mjtJoint.mjJNT_HINGE, mujoco.mjtJoint.mjJNT_SLIDE)


class Packet(IntEnum):
  """Kind of a packet, and its numbers; numbers of joints are in the robot's order."""

  command = 1  # mode, targets, kp, kd
  advance = 2  # in simulated time: the time to simulate until [s]
  state = 3  # time, angles, speeds, torques, quaternion, gyro
  advanced = 4  # in simulated time: the time that is reached [s]


class Simulated:
  """A robot with servos, sensors and a radio, all with defects; time is the robot's [s]."""

  def __init__(self, settings: dict[str, Any]) -> None:
    """Build the robot of the file `model`: its free joint at `root` [7], its joints at `home`, by name."""
    self.settings = settings
    self.mj = _load(settings)
    self.data, self.random = mujoco.MjData(self.mj), np.random.default_rng(settings["seed"])
    self.root = int(np.flatnonzero(self.mj.jnt_type == mujoco.mjtJoint.mjJNT_FREE)[0])
    tree = self.mj.body_rootid[self.mj.jnt_bodyid[self.root]]
    own = np.isin(self.mj.jnt_type, SCALAR) & (self.mj.body_rootid[self.mj.jnt_bodyid] == tree)
    ids = np.flatnonzero(own)
    self.joints = [self.mj.joint(index).name for index in ids.tolist()]
    self.qpos, self.dofs = self.mj.jnt_qposadr[ids], self.mj.jnt_dofadr[ids]
    self.limit = settings["torque"] * np.array([_torque_limit(self.mj, index) for index in ids.tolist()])
    self.mj.dof_frictionloss[self.dofs] += settings["friction"]
    for name, angle in settings["home"].items():
      if name in self.joints:
        self.data.joint(name).qpos[0] = angle
    first = self.mj.jnt_qposadr[self.root]
    self.free, self.place = slice(first, first + 7), np.array(settings["root"])
    self.data.qpos[self.free] = self.place
    self.data.qpos[self.qpos] += settings["start_angle"] * self.random.uniform(-1, 1, len(ids))
    first = self.mj.jnt_dofadr[self.root]
    self.velocity = slice(first, first + 6)
    self.command = np.zeros((3, len(ids)))  # targets, kp, kd
    self.torques = np.zeros(len(ids))
    self.inbox = deque[tuple[float, Floats]]()  # time of arrival, numbers
    self.outbox = deque[tuple[float, Floats]]()
    self.next_message = 0.0
    self._hold(HELD if settings["hold"] else 0.0)

  def receive(self, numbers: Floats) -> None:
    """Take a command, which arrives after the delay, or is lost."""
    self._post(self.inbox, numbers)

  def advance(self, until: float) -> list[Floats]:
    """Simulate; return the packets that leave the radio, with the time of their sensors."""
    sent = []
    while self.data.time < until - 1e-9:
      while self.inbox and self.inbox[0][0] <= self.data.time:
        _, numbers = self.inbox.popleft()
        if self.held and numbers[1] == Mode.act:
          self._hold(0.0)
        self.command = numbers[2:].reshape(3, -1)
      self._step()
      if self.data.time >= self.next_message - 1e-9:
        self.next_message += 1 / self.settings["rate"]
        self._post(self.outbox, self.measure())
      while self.outbox and self.outbox[0][0] <= self.data.time:
        sent.append(self.outbox.popleft()[1])
    return sent

  def measure(self) -> Floats:
    """Return a packet with what the sensors measure now."""
    data, noise = self.data, {name: self.settings["noise"] * value for name, value in NOISE.items()}
    draw = self.random.standard_normal
    attitude = data.qpos[self.free][3:].copy()
    mujoco.mju_quatIntegrate(attitude, draw(3), noise["attitude"])
    angles = data.qpos[self.qpos] + noise["angles"] * draw(len(self.qpos))
    speeds = data.qvel[self.dofs] + noise["speeds"] * draw(len(self.dofs))
    gyro = data.qvel[self.velocity][3:] + noise["gyro"] * draw(3)
    return np.concatenate([[Packet.state, data.time], angles, speeds, self.torques, attitude, gyro])

  def summary(self) -> dict[str, Any]:
    """Return where the robot is: its way over the ground [m], and the cosine of its tilt."""
    way = self.data.qpos[self.free][:2] - self.place[:2]
    return {"way": way.tolist(), "upright": float(self.data.body(self.mj.jnt_bodyid[self.root]).xmat[8])}

  def _step(self) -> None:
    data, (targets, kp, kd) = self.data, self.command
    torque = kp * (targets - data.qpos[self.qpos]) - kd * data.qvel[self.dofs]
    self.torques = np.clip(torque, -self.limit, self.limit)
    data.qfrc_applied[self.dofs] = self.torques
    mujoco.mj_step(self.mj, data)
    if self.held:
      data.qpos[self.free], data.qvel[self.velocity] = self.place, 0.0

  def _hold(self, inertia: float) -> None:
    """Add mass and inertia to the trunk [kg, kg m^2]; softness of contacts and friction depends on them."""
    physics = mujoco.mjtState.mjSTATE_FULLPHYSICS
    state = np.empty(mujoco.mj_stateSize(self.mj, physics))
    mujoco.mj_getState(self.mj, self.data, state, physics)
    self.held = inertia > 0
    self.mj.dof_armature[self.velocity] = inertia
    mujoco.mj_setConst(self.mj, self.data)
    mujoco.mj_setState(self.mj, self.data, state, physics)
    mujoco.mj_forward(self.mj, self.data)

  def _post(self, box: deque[tuple[float, Floats]], numbers: Floats) -> None:
    if self.random.random() >= self.settings["loss"]:
      box.append((self.data.time + self.settings["delay"], numbers))


def _load(settings: dict[str, Any]) -> mujoco.MjModel:
  """Return the model without actuators, on a floor; raise ValueError if it has no free joint."""
  spec = mujoco.MjSpec.from_file(settings["model"])
  if not spec.worldbody.geoms:
    spec.worldbody.add_geom(type=mujoco.mjtGeom.mjGEOM_PLANE, size=[0, 0, 1])
  spec.option.timestep = settings["step"]
  bits = mujoco.mjtDisableBit
  spec.option.disableflags |= bits.mjDSBL_ACTUATION | bits.mjDSBL_AUTORESET  # nan is reported, not hidden
  mj = spec.compile()
  if not (mj.jnt_type == mujoco.mjtJoint.mjJNT_FREE).any():
    raise ValueError("no free joint: the robot is fixed to the world")
  return mj


def _torque_limit(mj: mujoco.MjModel, joint: int) -> float:
  """Return the greatest torque of a joint [N m], the least of its limits in the file; inf without any."""
  limits = [mj.jnt_actfrcrange[joint, 1]] if mj.jnt_actfrclimited[joint] else []
  for index in np.flatnonzero(mj.actuator_trnid[:, 0] == joint).tolist():
    if mj.actuator_trntype[index] == mujoco.mjtTrn.mjTRN_JOINT:
      gear = abs(mj.actuator_gear[index, 0])
      motor = mj.actuator_biastype[index] == mujoco.mjtBias.mjBIAS_NONE
      limits += [gear * mj.actuator_forcerange[index, 1]] if mj.actuator_forcelimited[index] else []
      if motor and mj.actuator_ctrllimited[index]:
        limits.append(gear * mj.actuator_gainprm[index, 0] * mj.actuator_ctrlrange[index, 1])
  return min(limits, default=math.inf)


def serve(robot: Simulated, link: socket.socket, realtime: bool) -> None:
  """Exchange packets until standard input is closed, as fast as the clock or as the controller asks."""
  peer: Any = None  # who sent the last packet
  start = time.perf_counter()
  while True:
    ready, _, _ = select.select([link, sys.stdin], [], [], robot.settings["step"] if realtime else None)
    if sys.stdin in ready and not sys.stdin.readline():
      return
    start = max(start, time.perf_counter() - robot.data.time - BEHIND)
    until = time.perf_counter() - start if realtime else 0.0
    if link in ready:
      content, peer = link.recvfrom(LARGEST)
      numbers = np.frombuffer(content[: len(content) // 8 * 8])
      if len(numbers) == 2 + 3 * len(robot.joints) and numbers[0] == Packet.command:
        robot.receive(numbers)
      elif len(numbers) == 2 and numbers[0] == Packet.advance:
        until = numbers[1]
    sent = robot.advance(until)
    if until and not realtime:
      sent.append(np.array([Packet.advanced, until]))
    for packet in sent:
      if peer is not None:
        link.sendto(packet.tobytes(), peer)


def speak_udp(robot: Simulated) -> None:
  """Print the port and the joints, and serve."""
  with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as link:
    link.bind((HOST, 0))
    print(json.dumps({"port": link.getsockname()[1], "joints": robot.joints}), flush=True)
    serve(robot, link, robot.settings["realtime"])


def main(speak: Callable[[Simulated], None] = speak_udp) -> None:
  """Simulate the robot that the last argument describes, settings as JSON."""
  settings = json.loads(sys.argv[-1])
  try:
    robot = Simulated(settings)
  except ValueError as error:
    print(json.dumps({"error": " ".join(str(error).split())}), flush=True)
    return
  speak(robot)
  print(json.dumps(robot.summary()), flush=True)
