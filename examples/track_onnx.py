"""Use of an exported policy of motion_track in plain MuJoCo, without gpurobot.

`pip install mujoco onnxruntime`, then
`python track_onnx.py policy.onnx motion_0_walk.npz robot.xml`. `gpurobot export` writes motion and robot
beside the policy; the motion has as many frames per second as the policy acts.
"""

import json
from argparse import ArgumentParser

import mujoco
import numpy as np
import onnxruntime

TORQUE = 0.75  # largest change of a servo's torque by an action of 1, over its largest torque


class Motion:
  """Frames of a motion with their velocities, which are central differences."""

  def __init__(self, file: str) -> None:
    """Read a file of `gpurobot export` or `gpurobot motion`."""
    with np.load(file) as arrays:
      self.place, self.turn, self.angles = (arrays[name] for name in ("root_pos", "root_quat", "joint_pos"))
      self.fps = float(arrays["fps"])
    frame = np.arange(len(self.place))
    before, after = np.maximum(frame - 1, 0), np.minimum(frame + 1, len(frame) - 1)
    rate = self.fps / (after - before)[:, None]
    self.velocity = rate * (self.place[after] - self.place[before])
    self.speeds = rate * (self.angles[after] - self.angles[before])
    self.spin = np.zeros_like(self.place)
    for row, one, other in zip(self.spin, self.turn[before], self.turn[after], strict=True):
      mujoco.mju_subQuat(row, other, one)
    self.spin *= rate

  def root(self, frame: int, lag: float) -> np.ndarray:
    """Return the quaternion [4] of the root, `lag` seconds before a frame."""
    turn = self.turn[frame].copy()
    mujoco.mju_quatIntegrate(turn, self.spin[frame], -lag)
    return turn


def observe(
  data: mujoco.MjData, motion: Motion, frame: int, lag: float, settings: dict, home: np.ndarray
) -> np.ndarray:
  """Return the observation, but for the last action, with the blocks that policy.json lists."""
  ahead = [1 + i * settings["frame_spacing"] for i in range(settings["next_frames"])]
  rows = [min(frame + step, len(motion.place) - 1) for step in ahead]
  coming = [part for row in rows for part in (motion.angles[row] - home, 0.1 * motion.speeds[row])]
  turn = np.zeros(4)
  mujoco.mju_negQuat(turn, data.body(1).xquat)
  mujoco.mju_mulQuat(turn, turn.copy(), motion.root(frame, lag))
  relative, trunk = np.zeros(9), np.zeros(9)
  mujoco.mju_quat2Mat(relative, turn)
  mujoco.mju_quat2Mat(trunk, data.qpos[3:7])
  blocks = [*coming, relative.reshape(3, 3)[:, :2].ravel(), -trunk.reshape(3, 3)[2]]
  joints = data.model.actuator_trnid[:, 0]
  angles = data.qpos[data.model.jnt_qposadr[joints]] - home
  return np.concatenate([*blocks, data.qvel[3:6], angles, 0.1 * data.qvel[data.model.jnt_dofadr[joints]]])


def track(policy_file: str, motion_file: str, robot_file: str, frames: int) -> tuple[np.ndarray, np.ndarray]:
  """Return observations [frames, width] and errors of the joints [frames, joints] [rad], from the start."""
  policy, motion = onnxruntime.InferenceSession(policy_file), Motion(motion_file)
  facts = json.loads(policy.get_modelmeta().custom_metadata_map["gpurobot"])
  settings = facts["settings"]
  model = mujoco.MjModel.from_xml_path(robot_file)
  model.opt.timestep = facts["rate"]["physics step [s]"]
  data, step = mujoco.MjData(model), facts["rate"]["step [s]"]
  driven = model.actuator_trnid[:, 0]
  joints = model.jnt_qposadr[driven]
  home = model.key("home").qpos[joints]
  stiffness, damping = -model.actuator_biasprm[:, 1:3].T
  scale = np.minimum(TORQUE * model.actuator_forcerange[:, 1] / stiffness, settings["action_scale"])
  lead = damping / stiffness + step / 2  # by which a servo lags, to the middle of the step
  data.qpos[:3], data.qpos[3:7], data.qpos[joints] = motion.place[0], motion.turn[0], motion.angles[0]
  data.qvel[:3], data.qvel[3:6] = motion.velocity[0], motion.spin[0]
  data.qvel[model.jnt_dofadr[driven]] = motion.speeds[0]
  mujoco.mj_forward(model, data)
  action, seen, errors = np.zeros(model.nu), [], []
  for frame in range(frames):
    errors.append(data.qpos[joints] - motion.angles[frame])
    seen.append(np.concatenate([observe(data, motion, frame, model.opt.timestep, settings, home), action]))
    (action,) = policy.run(["action"], {"obs": seen[-1][None].astype(np.float32)})[0]
    data.ctrl[:] = np.clip(
      motion.angles[frame] + lead * motion.speeds[frame] + scale * action, *model.jnt_range[driven].T
    )
    mujoco.mj_step(model, data, settings["substeps"])
  return np.array(seen), np.array(errors)


if __name__ == "__main__":
  parser = ArgumentParser(description="Let an exported policy track a motion in plain MuJoCo.")
  parser.add_argument("policy", help="policy.onnx that gpurobot export has written")
  parser.add_argument("motion", help="file that gpurobot motion has written")
  parser.add_argument("robot", help="assets/humanoid/servos.xml")
  given = parser.parse_args()
  length = len(Motion(given.motion).place) - 1
  errors = track(given.policy, given.motion, given.robot, length)[1]
  print(f"{length} frames; the joints are {np.abs(errors).mean():.3f} rad from the motion in the mean")
