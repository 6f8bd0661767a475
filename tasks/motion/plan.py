"""Plans of our own clips: where the feet of a robot with two legs are, how high it is, how its trunk turns.

Lengths are in lengths of a leg, times in seconds.
"""

import dataclasses
import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import pi
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
LEFT, RIGHT = 0, 1
STILL = 0.5  # time for which a clip stands at its start and end [s]


@dataclass(frozen=True)
class Plan:
  """Paths over T frames that the parts of a robot should follow."""

  time: Floats  # [T] [s]
  feet: Floats  # [T, 2, 4] offsets of left and right foot from their home: x, y, z, and yaw [rad]
  support: Floats  # [T, 2] shares of the weight that the left and the right foot carry
  height: Floats  # [T] of the centre of mass above its height in standing
  pitch: Floats  # [T] of the trunk, forward [rad]
  hands: Floats  # [T, 2, 3] offsets of left and right hand from their home, along the trunk's heading
  cut: float = 0.0  # part of the plan at each end that is no part of the clip [s]


class Step(NamedTuple):
  """Step of one foot, which leaves the ground at `start` and lands at `end`."""

  foot: int
  start: float
  end: float
  x: float
  y: float = 0.0
  yaw: float = 0.0


class Key(NamedTuple):
  """Height with its first and second derivative at a time."""

  time: float
  height: float
  speed: float = 0.0
  acceleration: float = 0.0


def stand(seconds: float, fps: float) -> Plan:
  """Return the plan to stand on both feet."""
  time = np.arange(round(seconds * fps) + 1) / fps
  zero, feet = np.zeros(len(time)), np.zeros((len(time), 2, 4))
  return Plan(time, feet, np.full((len(time), 2), 0.5), zero, zero, np.zeros((len(time), 2, 3)))


def ease(time: Floats, start: float, end: float) -> Floats:
  """Return a minimum-jerk course [T] from 0 at `start` to 1 at `end` (Flash and Hogan 1985)."""
  part = np.clip((time - start) / (end - start), 0.0, 1.0)
  return part**3 * (10 - 15 * part + 6 * part**2)


def stepping(plan: Plan, steps: Sequence[Step], clearance: float) -> Plan:
  """Return a plan with steps in order of time; feet rise by `clearance`.

  Between two steps both feet are on the ground and the weight shifts; none is where two steps overlap.
  """
  feet, places = plan.feet.copy(), np.zeros((2, 4))
  for step in steps:
    part = ease(plan.time, step.start, step.end)[:, None]
    to = np.array([step.x, step.y, 0.0, step.yaw])
    feet[:, step.foot] += part * (to - places[step.foot])
    phase = np.clip((plan.time - step.start) / (step.end - step.start), 0.0, 1.0)
    feet[:, step.foot, 2] += clearance * (4 * phase * (1 - phase)) ** 2
    places[step.foot] = to
  return dataclasses.replace(plan, feet=feet, support=_support(plan.time, steps))


def _support(time: Floats, steps: Sequence[Step]) -> Floats:
  """Return the shares of weight [T, 2]: all on the foot that stands while the other one steps."""
  keys = [(steps[0].start - STILL / 2, 0.5)]  # time, and share of the left foot
  landings = [-np.inf, *(step.end for step in steps)]
  starts = [*(step.start for step in steps[1:]), np.inf]
  for step, before, after in zip(steps, landings, starts, strict=False):
    share = float(step.foot == RIGHT)
    keys += [(max(step.start, before), share), (min(step.end, after), share)]
  keys.append((steps[-1].end + STILL / 2, 0.5))
  left = np.interp(time, *np.array(keys).T)
  return np.stack([left, 1 - left], 1)


def course(time: Floats, keys: Sequence[Key]) -> Floats:
  """Return heights [T] on polynomials of fifth degree through keys; before and after them they are still."""
  heights = np.full(len(time), keys[0].height)
  for one, other in itertools.pairwise(keys):
    span = other.time - one.time
    powers = np.array([[t**n for n in range(6)] for t in (0.0, span)])
    first = np.array([[n * t ** max(n - 1, 0) for n in range(6)] for t in (0.0, span)])
    second = np.array([[n * (n - 1) * t ** max(n - 2, 0) for n in range(6)] for t in (0.0, span)])
    ends = np.ravel([[end[row] for end in (one, other)] for row in (1, 2, 3)])
    factors = np.linalg.solve(np.concatenate([powers, first, second]), ends)
    inside = time >= one.time
    since = np.minimum(time[inside] - one.time, span)
    heights[inside] = sum(factor * since**n for n, factor in enumerate(factors))
  return heights


# ---- the clips ----


def walk(fps: float, gravity: float) -> Plan:  # noqa: ARG001
  """Walk forward, from standing to standing."""
  pace, double, length, count = 0.48, 0.1, 0.4, 9
  starts = [STILL + i * pace + double for i in range(count)]
  steps = [
    Step(i % 2, start, start + pace - double, length * min(i + 1, count - 1))
    for i, start in enumerate(starts)
  ]
  plan = stepping(stand(3 * STILL + count * pace, fps), steps, clearance=0.1)
  return _with_arms(plan, 0.25)


def run(fps: float, gravity: float) -> Plan:
  """Run forward, with a flight in each step; the plan stands at its ends, where it is cut off."""
  pace, stance, length, count = 0.36, 0.26, 0.65, 26
  starts = [STILL + i * pace for i in range(count)]
  steps = [Step(i % 2, start, start + 2 * pace - stance, length * (i + 1)) for i, start in enumerate(starts)]
  plan = stepping(stand(2 * STILL + (count + 1) * pace, fps), steps, clearance=0.2)
  flight, top = pace - stance, -0.02
  speed = gravity * flight / 2  # of a take-off and of a landing
  keys = [
    Key(start + late, top, sign * speed, -gravity)
    for start in starts
    for late, sign in ((0.0, 1.0), (flight, -1.0))
  ]
  height = course(plan.time, keys)
  plan = _with_arms(plan, 0.3)
  return dataclasses.replace(plan, height=height, pitch=np.full_like(height, 0.1), cut=STILL + 6 * pace)


def jump(fps: float, gravity: float) -> Plan:
  """Jump up and forward from a crouch, and land in one."""
  flight, low, top = 0.36, -0.17, 0.03
  speed = gravity * flight / 2  # of the take-off
  off = STILL + 0.85
  on = off + flight
  keys = [
    Key(STILL, 0.0),
    Key(STILL + 0.5, low),
    Key(off, top, speed, -gravity),
    Key(on, top, -speed, -gravity),
    Key(on + 0.35, low),
    Key(on + 0.85, 0.0),
  ]
  steps = [Step(LEFT, off, on, 0.3), Step(RIGHT, off, on, 0.3)]
  plan = stepping(stand(on + 0.85 + STILL, fps), steps, clearance=0.0)
  height = course(plan.time, keys)
  flying = (plan.time > off) & (plan.time < on)
  feet = plan.feet.copy()
  feet[:, :, 2] = np.where(flying, height - top, 0.0)[:, None]
  hands = plan.hands.copy()
  hands[:, :, 0] = -0.4 * height[:, None]
  return dataclasses.replace(
    plan,
    feet=feet,
    height=height,
    pitch=-0.5 * np.minimum(height, 0.0),
    hands=hands,
    support=np.full_like(plan.support, 0.5),
  )


def turn(fps: float, gravity: float) -> Plan:  # noqa: ARG001
  """Turn on the spot by half a turn to the left, in eight steps."""
  pace, double, count = 0.5, 0.12, 8
  starts = [STILL + i * pace + double for i in range(count)]
  steps = [
    Step(i % 2, start, start + pace - double, 0.0, yaw=pi / (count / 2) * (1 + i // 2))
    for i, start in enumerate(starts)
  ]
  return stepping(stand(3 * STILL + count * pace, fps), steps, clearance=0.08)


def squat(fps: float, gravity: float) -> Plan:  # noqa: ARG001
  """Squat twice, the arms forward."""
  low, down, count = -0.26, 1.0, 2
  keys = [Key(STILL + i * down, low if i % 2 else 0.0) for i in range(2 * count + 1)]
  plan = stand(2 * STILL + 2 * count * down, fps)
  height = course(plan.time, keys)
  hands = plan.hands.copy()
  hands[:, :, 0], hands[:, :, 2] = -0.4 * height[:, None], -0.6 * height[:, None]
  return dataclasses.replace(plan, height=height, pitch=-0.9 * height, hands=hands)


def wave(fps: float, gravity: float) -> Plan:  # noqa: ARG001
  """Raise the right hand, wave it three times, and lower it."""
  rise, beat, count = 0.8, 0.7, 3
  begin = STILL + rise
  end = begin + count * beat
  plan = stand(end + rise + STILL, fps)
  up = ease(plan.time, STILL, begin) - ease(plan.time, end, end + rise)
  beats = np.sin(2 * pi * (plan.time - begin) / beat) * (plan.time > begin) * (plan.time < end)
  hands = plan.hands.copy()
  hands[:, RIGHT] = up[:, None] * [0.15, -0.05, 0.55]
  hands[:, RIGHT, 1] += 0.15 * up * beats
  return dataclasses.replace(plan, hands=hands)


def _with_arms(plan: Plan, swing: float) -> Plan:
  """Return a plan with hands that swing forward with the foot of the other side, by a share of its lead."""
  lead = swing * (plan.feet[:, RIGHT, 0] - plan.feet[:, LEFT, 0])
  hands = plan.hands.copy()
  hands[:, LEFT, 0], hands[:, RIGHT, 0] = lead, -lead
  return dataclasses.replace(plan, hands=hands)


# Plans by name, for a number of frames per second and the gravity [lengths of a leg / s^2].
PLANS: dict[str, Callable[[float, float], Plan]] = {
  "walk": walk,
  "run": run,
  "jump": jump,
  "turn": turn,
  "squat": squat,
  "wave": wave,
}
