"""Use of an exported walking policy in plain MuJoCo, without gpurobot.

`pip install mujoco onnxruntime`, then `python run_onnx.py controller.onnx robot.xml`, two files of an export.
A task of your own may need other sensors: add them to `measure`.
"""

import json
import math
from argparse import ArgumentParser
from typing import Any

import mujoco
import numpy as np
import onnxruntime

COMMAND = np.array([0.6, 0.0, 0.3])  # forward, to the left [m/s], turning to the left [rad/s]


def measure(data: mujoco.MjData, facts: dict[str, Any]) -> dict[str, np.ndarray]:
  """Return the numbers of the sensors that policy.json lists, by name."""
  axes, joints = data.body(data.model.jnt_bodyid[0]).xmat.reshape(3, 3), {"angles": [], "speeds": []}
  cycle = 2 * math.pi * data.time / facts["settings"].get("step_seconds", 1.0)
  for sensor in facts["sensors"]:
    if sensor["name"] in {"angles", "speeds"}:
      joints[sensor["name"]] = [data.joint(name) for name in sensor["columns"]]
  return {
    "velocity": data.qvel[:3] @ axes,
    "angular_velocity": data.qvel[3:6],
    "gravity": -axes[2],
    "command": COMMAND,
    "angles": np.array([joint.qpos[0] for joint in joints["angles"]]),
    "speeds": np.array([joint.qvel[0] for joint in joints["speeds"]]),
    "clock": np.array([math.sin(cycle), math.cos(cycle)]),
  }


def walk(policy_file: str, robot_file: str, seconds: float) -> tuple[np.ndarray, np.ndarray]:
  """Return observations [steps, width] and velocities [steps, 3] (ahead, left, yaw rate) of a walk."""
  policy = onnxruntime.InferenceSession(policy_file)
  facts = json.loads(policy.get_modelmeta().custom_metadata_map["gpurobot"])
  model = mujoco.MjModel.from_xml_path(robot_file)
  joints = [model.joint(index).name for index in range(model.njnt)]
  if joints != [joint["name"] for joint in facts["joints"]]:
    raise SystemExit(f"{robot_file} has the joints {joints}, not those of the policy")
  data = mujoco.MjData(model)
  mujoco.mj_resetDataKeyframe(model, data, model.key("home").id)
  state, seen, moved = np.zeros((1, facts["inputs"]["state"]["width"]), np.float32), [], []
  while data.time < seconds:
    mujoco.mj_kinematics(model, data)  # updates the axes of the trunk
    measured = measure(data, facts)
    moved.append([*measured["velocity"][:2], measured["angular_velocity"][2]])
    inputs = {name: measured[name][None].astype(np.float32) for name in facts["inputs"] if name != "state"}
    (data.ctrl[:],), (obs,), state = policy.run(["ctrl", "obs", "next_state"], {**inputs, "state": state})
    seen.append(obs)
    mujoco.mj_step(model, data, facts["settings"]["substeps"])
  return np.array(seen), np.array(moved)


if __name__ == "__main__":
  parser = ArgumentParser(description="Let an exported walking policy walk in plain MuJoCo.")
  parser.add_argument("policy", help="controller.onnx that gpurobot export has written")
  parser.add_argument("robot", help="robot.xml beside it")
  given = parser.parse_args()
  velocity = walk(given.policy, given.robot, seconds=10.0)[1][50:].mean(0)  # after the first second
  print("command", COMMAND, "mean velocity", velocity.round(2), "[m/s, m/s, rad/s]")
