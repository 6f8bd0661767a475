"""Kinds of faults that a log shows, with their mends."""

from dataclasses import dataclass
from typing import NamedTuple


class Kind(NamedTuple):
  """What can be wrong between a robot and its policy."""

  title: str
  mend: str
  stage: int = 0  # a finding of a later stage may follow from one of an earlier


KINDS = {
  "joints_in": Kind(
    "joints in another order in the sensors", "take angles and speeds by name, in the order of `sensors`"
  ),
  "sign_in": Kind(
    "sign of a joint flipped in the sensors", "negate this joint's angle and speed where the message is read"
  ),
  "degrees": Kind("angles in another unit", "convert the robot's angles to rad"),
  "zero": Kind("angles with another zero", "subtract the joint's zero where the message is read"),
  "home_twice": Kind("home angles subtracted twice", "subtract `offset` of `observation.columns` once"),
  "home_never": Kind("home angles not subtracted", "subtract `offset` of `observation.columns`"),
  "speed_unit": Kind("joint speeds in another unit", "convert the robot's speeds to rad/s"),
  "speed_order": Kind("joint speeds in another order", "take the speeds by name, as the angles"),
  "gyro_degrees": Kind("gyro in another unit", "convert the gyro to rad/s"),
  "gyro_frame": Kind(
    "gyro in another frame", "rotate the gyro into the axes of the trunk: x ahead, y left, z up"
  ),
  "quaternion_order": Kind(
    "quaternion as x, y, z, w", "reorder the quaternion to w, x, y, z where the message is read"
  ),
  "conjugated": Kind("quaternion conjugated", "use the rotation from the trunk's axes to the world's"),
  "gravity_world": Kind("gravity in the world's frame", "rotate (0, 0, -1) into the axes of the trunk"),
  "gravity": Kind("gravity is not the attitude's", "compute gravity from the quaternion of the same message"),
  "action_missing": Kind("last action missing", "feed the last action of the policy back"),
  "action_raw": Kind("action not clipped", "clip the action to [-1, 1] before it is used and fed back"),
  "action_old": Kind("last action of another step", "feed the action of the step before back"),
  "history_order": Kind("history in the wrong order", "put the oldest observation first"),
  "command_order": Kind("commands in another order", "order the commands as `sensors` lists them"),
  "observation": Kind("observation is not the sensors'", "compute it as `observation.columns` says"),
  "normalisation": Kind("observation not normalised", "subtract the mean, and divide by the deviation, once"),
  "policy": Kind("action of another policy", "run the file of this export, with all inputs that it lists"),
  "joints_out": Kind(
    "joints in another order in the commands", "send the targets by name, in the robot's order"
  ),
  "sign_out": Kind("sign of a joint flipped in the commands", "negate this joint's target where it is sent"),
  "action_scale": Kind("action scaled otherwise", "send offset + action @ gain of `control`"),
  "target": Kind("target is not the action's", "send offset + action @ gain of `control`"),
  "held": Kind("not every action is sent", "send every action, and hold it until the next"),
  "rate": Kind("another control rate", "run the policy every `step [s]` of `rate`", 1),
  "drift": Kind("clocks drift apart", "use one clock, or synchronise the two", 1),
  "kp": Kind("other stiffness", "use `kp` of `joints`", 1),
  "kd": Kind("other damping", "use `kd` of `joints`", 1),
  "sensor_latency": Kind(
    "sensors late", "read the newest message, or train with a larger env.action_delay", 1
  ),
  "actuator_latency": Kind("commands late", "send sooner, or train with a larger env.action_delay", 1),
  "torque": Kind("torques saturated", "raise the motors' limit, or train with this `forcerange`", 2),
}


@dataclass(frozen=True)
class Finding:
  """A difference from training."""

  kind: str  # a key of KINDS
  evidence: str  # with a number
  size: float  # of the difference, relative to the quantity; at least 1 if nothing of it is left

  @property
  def line(self) -> str:
    """The finding in words: title, evidence, mend."""
    kind = KINDS[self.kind]
    return f"{kind.title}: {self.evidence}; {kind.mend}"


def ranked(findings: list[Finding]) -> list[Finding]:
  """Return findings, the worst first and one of each kind, but causes before what may follow from them."""
  order = sorted(findings, key=lambda own: (KINDS[own.kind].stage, -own.size))
  return list({own.kind: own for own in reversed(order)}.values())[::-1]
