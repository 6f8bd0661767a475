"""Walking reference motion of the humanoid, in closed form.

The torso moves at constant speed and stays upright. It sways like an inverted pendulum with a support that
alternates between the feet (the linear model of Kajita et al. 2001). A foot lands on its heel, rolls over
sole and toe without sliding, and swings to its next foothold on a minimum-jerk path (Flash and Hogan 1985).
Inverse kinematics gives the leg angles.
"""

import functools
import itertools
from dataclasses import dataclass
from math import pi
from typing import Any

import torch
from torch import Tensor

import physics
from physics.robot import Asked, read_legged
from tasks.core.errors import SettingError
from tasks.motion.clip import Clip

SPEED, CYCLES = 0.8, 14  # of the clip: its speed [m/s], and its number of gait cycles
GRAVITY = 9.81  # [m/s^2]
LONGEST = 0.95  # longest stride that the legs reach, between two footholds of a foot [m]
STANCE = 0.62  # fraction of a cycle that a foot is on the ground, after its landing
# Foot pitch [rad] over a cycle, as (phase, pitch): landing, flat, flat, lift-off, landing; heel up is
# positive.
PITCH = ((0.0, -0.25), (0.12, 0.0), (0.36, 0.0), (STANCE, 0.55), (1.0, -0.25))
CLEARANCE = 0.06  # largest rise of the ankle of a swinging foot [m]
TRACK = 0.08  # lateral distance of each foot from the middle [m]
BEHIND = 0.035  # distance of the ankle behind the torso in mid-stance, where the weight is over the foot [m]
CENTRE = 0.83  # approximate height of the centre of mass [m]
HEIGHT, BOB = 1.25, 0.012  # mean and amplitude of the torso height [m]
PELVIS_TURN, PELVIS_LIST = 0.08, 0.03  # amplitudes of the pelvis rotations about z and x [rad]
ARM_SWING = 0.35  # amplitude of the shoulder angles [rad]
ELBOW, ELBOW_SWING = -0.9, 0.2  # mean and amplitude of the elbow angles [rad]


@dataclass(frozen=True)
class Walk:
  """Walk of the humanoid `model` along x, at `speed` [m/s], with a gait cycle of `period` [s] for two steps.

  Raises ValueError if the stride is too long for the legs.
  """

  model: Any
  speed: float
  period: float

  def __post_init__(self) -> None:
    """Raise ValueError if the stride is too long."""
    if self.stride > LONGEST:
      asked = f"{self.speed:g} m/s with a cycle of {self.period:g} s"
      raise ValueError(
        f"a walk at {asked} has strides of {self.stride:.2f} m, legs reach {LONGEST} m: shorten them"
      )

  @property
  def stride(self) -> float:
    """The distance that the body travels in a gait cycle [m]."""
    return self.speed * self.period

  @property
  def sway(self) -> float:
    """The amplitude of the lateral torso motion [m].

    A pendulum of height h with its support at s accelerates by g / h (y - s). This is its response to the
    first harmonic of a support that jumps between the feet: 4 / pi times their distance from the middle.
    """
    return 4 / pi * TRACK / (1 + (2 * pi / self.period) ** 2 * CENTRE / GRAVITY)

  def qpos(self, time: Tensor) -> Tensor:
    """Return the configurations [T, nq] float64 at times [T] [s]; the left foot lands at time 0."""
    phases = {"left": (time / self.period) % 1.0, "right": (time / self.period + 0.5) % 1.0}
    weight = 2 * pi * (phases["left"] - STANCE / 2)  # phase of the sway: 0 at mid-stance of the left foot
    torso = torch.stack([self.speed * time, self.sway * weight.cos(), HEIGHT + BOB * (2 * weight).cos()], 1)
    turn, tilt = PELVIS_TURN * weight.sin(), PELVIS_LIST * weight.cos()
    angles = {"abdomen_z": turn, "abdomen_x": tilt}
    pelvis = rotation("z", turn) @ rotation("x", tilt)
    middle = torso + self._offset("waist") + rotation("z", turn) @ self._offset("pelvis")
    for side, phase in phases.items():
      hip = middle + pelvis @ self._offset(f"{side}_thigh")
      ankle, pitch = self._foot(side, phase)
      ankle[:, 0] += torso[:, 0]
      angles |= self._leg(side, hip - ankle, pelvis, rotation("y", pitch))
      swing = (2 * pi * phase).cos()  # an arm is at the back while the foot on its side is in front
      angles |= {f"{side}_shoulder_y": ARM_SWING * swing, f"{side}_elbow": ELBOW - ELBOW_SWING * swing}
    qpos = torch.tensor(self.model.qpos0).repeat(len(time), 1)
    qpos[:, :3] = torso
    for joint, angle in angles.items():
      qpos[:, self.model.jnt_qposadr[self.model.joint_id(joint)]] = angle
    return qpos

  def qvel(self, time: Tensor) -> Tensor:
    """Return the velocities [T, nv] at times [T] [s], by central differences; the torso does not rotate."""
    step = 1e-5
    change = (self.qpos(time + step) - self.qpos(time - step)) / (2 * step)
    return torch.cat([change[:, :3], torch.zeros_like(change[:, :3]), change[:, 7:]], 1)

  def _foot(self, side: str, phase: Tensor) -> tuple[Tensor, Tensor]:
    """Return the ankle position [T, 3] [m], its x relative to the torso, and the foot pitch [T] [rad]."""
    pitch = course(PITCH, phase)
    x, z = self._rolled(side, pitch)
    (x0, x1), (z0, z1) = self._rolled(side, torch.tensor([PITCH[-2][1], PITCH[-1][1]], dtype=phase.dtype))
    flown = course(((STANCE, 0.0), (1.0, 1.0)), phase)  # progress of the swing, 0 to 1
    flying = phase > STANCE
    x = torch.where(flying, x0 + (self.stride + x1 - x0) * flown, x)
    z = torch.where(flying, z0 + (z1 - z0) * flown + CLEARANCE * 4 * flown * (1 - flown), z)
    y = torch.full_like(x, TRACK if side == "left" else -TRACK)
    return torch.stack([self.stride * (STANCE / 2 - phase) - BEHIND + x, y, z], 1), pitch

  def _rolled(self, side: str, pitch: Tensor) -> tuple[Tensor, Tensor]:
    """Return x and z [T] [m] of an ankle; its foot rolled from flat, at x = 0, to `pitch` [T] [rad]."""
    radius = float(self.model.geom_size[self.model.geom_id(f"{side}_foot_inside"), 0])
    heel, toe = (self.model.site_pos[self.model.site_id(f"{side}_{part}")] for part in ("heel", "toe"))
    ball = torch.where(pitch > 0, float(toe[0]), float(heel[0]))  # x of the rolling point from the ankle
    height = -float(toe[2])
    x = ball + radius * pitch - ball * pitch.cos() + height * pitch.sin()
    return x, radius + ball * pitch.sin() + height * pitch.cos()

  def _leg(self, side: str, hip: Tensor, pelvis: Tensor, foot: Tensor) -> dict[str, Tensor]:
    """Return the joint angles [T] [rad] of a leg by name: inverse kinematics in closed form.

    `hip` is the position of the hip relative to the ankle [T, 3] [m]; `pelvis` and `foot` are rotations
    [T, 3, 3]; all are in world axes. The distance from hip to ankle gives the knee angle, the direction of
    the hip in the foot frame gives the ankle angles, and the remaining rotation gives the hip angles:
    pelvis Rx(hip_x) Rz(hip_z) Ry(hip_y) Ry(knee) Ry(ankle_y) Rx(ankle_x) = foot.
    """
    thigh, shank = -self._offset(f"{side}_shin")[2], -self._offset(f"{side}_foot")[2]
    knee = torch.acos((hip.square().sum(1) - thigh**2 - shank**2) / (2 * thigh * shank))
    x, y, z = (hip.unsqueeze(1) @ foot).squeeze(1).unbind(1)  # hip position in the foot frame
    ankle_x = torch.atan2(y, z)
    ankle_y = torch.atan2(torch.hypot(y, z), x) - torch.atan2(shank + thigh * knee.cos(), -thigh * knee.sin())
    turned = pelvis.mT @ foot @ rotation("x", -ankle_x) @ rotation("y", -ankle_y - knee)
    sign = -1.0 if side == "left" else 1.0  # the left joints about x and z are mirrored
    angles = {
      "hip_x": sign * torch.atan2(turned[:, 2, 1], turned[:, 1, 1]),
      "hip_z": sign * -torch.asin(turned[:, 0, 1]),
      "hip_y": torch.atan2(turned[:, 0, 2], turned[:, 0, 0]),
      "knee": knee,
      "ankle_y": ankle_y,
      "ankle_x": sign * ankle_x,
    }
    return {f"{side}_{joint}": angle for joint, angle in angles.items()}

  def _offset(self, body: str) -> Tensor:
    """Return the position of a body in its parent frame [3] [m]."""
    return torch.tensor(self.model.body_pos[self.model.body_id(body)])


def cycle(speed: float) -> float:
  """Return the duration of a gait cycle at a speed [m/s]: both stride and cadence grow with it [s]."""
  return 1.1 - 0.3 * speed


@functools.lru_cache(maxsize=4)
def steady_walk(asked: Asked, fps: float) -> Clip:
  """Return a walk at one speed as a clip of the humanoid; raise SettingError if the robot is another."""
  robot, spec = read_legged(asked)
  model = physics.load_model(spec)
  if "waist" not in model.body_names or "left_foot_inside" not in model.geom_names:
    raise SettingError("env.motion=steady_walk is of the humanoid of assets/ alone: write walk")
  walk = Walk(model, SPEED, cycle(SPEED))
  qpos = walk.qpos(torch.arange(round(CYCLES * walk.period * fps) + 1, dtype=torch.float64) / fps).numpy()
  columns = model.jnt_qposadr[[model.joint_id(joint) for joint in robot.joints]]
  return Clip("steady_walk", fps, qpos[:, :3], qpos[:, 3:7], qpos[:, columns], robot.joints)


def course(keys: tuple[tuple[float, float], ...], phase: Tensor) -> Tensor:
  """Return a minimum-jerk interpolation of `keys`, as (phase, value), at phases [T]: values [T]."""
  value = torch.full_like(phase, keys[0][1])
  for (start, before), (end, after) in itertools.pairwise(keys):
    part = ((phase - start) / (end - start)).clamp(0.0, 1.0)
    value += (after - before) * part**3 * (10 - 15 * part + 6 * part**2)
  return value


def rotation(axis: str, angle: Tensor) -> Tensor:
  """Return rotation matrices [T, 3, 3] about the axis x, y or z by angles [T] [rad]."""
  one, zero, sin, cos = torch.ones_like(angle), torch.zeros_like(angle), angle.sin(), angle.cos()
  rows = {
    "x": [one, zero, zero, zero, cos, -sin, zero, sin, cos],
    "y": [cos, zero, sin, zero, one, zero, -sin, zero, cos],
    "z": [cos, -sin, zero, sin, cos, zero, zero, zero, one],
  }[axis]
  return torch.stack(rows, 1).unflatten(1, (3, 3))
