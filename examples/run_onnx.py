"""Use of an exported quadruped policy in plain MuJoCo, without gpurobot.

`pip install mujoco onnxruntime`, then `python run_onnx.py policy.onnx robot.xml`. For another task, replace
`observe`.
"""

import json
from argparse import ArgumentParser

import mujoco
import numpy as np
import onnxruntime

COMMAND = np.array([0.6, 0.0, 0.3])  # forward, to the left [m/s], turning to the left [rad/s]


def observe(data: mujoco.MjData, home: np.ndarray, action: np.ndarray) -> np.ndarray:
  """Return the observation [48], with the blocks that policy.json lists."""
  trunk, qpos, qvel = data.body("trunk").xmat.reshape(3, 3), data.qpos, data.qvel
  return np.concatenate([qvel[:3] @ trunk, qvel[3:6], -trunk[2], COMMAND, qpos[7:] - home, qvel[6:], action])


def walk(policy_file: str, robot_file: str, seconds: float) -> np.ndarray:
  """Return the observations of a walk [steps, 48]."""
  policy = onnxruntime.InferenceSession(policy_file)
  facts = json.loads(policy.get_modelmeta().custom_metadata_map["gpurobot"])
  model = mujoco.MjModel.from_xml_path(robot_file)
  joints = [model.joint(index).name for index in range(model.njnt)]
  if joints != [joint["name"] for joint in facts["joints"]]:
    raise SystemExit(f"{robot_file} has the joints {joints}, not those of the policy")
  data = mujoco.MjData(model)
  mujoco.mj_resetDataKeyframe(model, data, model.key("home").id)
  home, action, seen = data.qpos[7:].copy(), np.zeros(model.nu), []
  while data.time < seconds:
    mujoco.mj_kinematics(model, data)  # updates the axes of the trunk
    seen.append(observe(data, home, action))
    inputs = {"obs": seen[-1][None].astype(np.float32)}
    action, data.ctrl[:] = (values[0] for values in policy.run(["action", "ctrl"], inputs))
    mujoco.mj_step(model, data, facts["settings"]["substeps"])
  return np.array(seen)


if __name__ == "__main__":
  parser = ArgumentParser(description="Let an exported quadruped policy walk in plain MuJoCo.")
  parser.add_argument("policy", help="policy.onnx that gpurobot export has written")
  parser.add_argument("robot", help="assets/quadruped/robot.xml")
  given = parser.parse_args()
  velocity = walk(given.policy, given.robot, seconds=10.0)[50:, [0, 1, 5]].mean(0)  # after the first second
  print("command", COMMAND, "mean velocity", velocity.round(2), "[m/s, m/s, rad/s]")
