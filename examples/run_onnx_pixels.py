"""Use of an exported policy that sees in plain MuJoCo, whose renderer draws its images, without gpurobot.

`pip install mujoco onnxruntime`, then `python run_onnx_pixels.py policy.onnx cart.xml`, for the policy of
`cartpole_pixels`. For another task, replace `see`.
"""

import json
from argparse import ArgumentParser

import mujoco
import numpy as np
import onnxruntime

CAMERA = "side"


def see(renderer: mujoco.Renderer, data: mujoco.MjData) -> np.ndarray:
  """Return the grey image [height, width, 1] of the camera."""
  renderer.update_scene(data, CAMERA)
  return (renderer.render().sum(-1, dtype=np.int32, keepdims=True) // 3).astype(np.uint8)


def balance(policy_file: str, robot_file: str, steps: int) -> np.ndarray:
  """Return the angles of the pole [steps] while the policy balances it [rad]."""
  policy = onnxruntime.InferenceSession(policy_file)
  facts = json.loads(policy.get_modelmeta().custom_metadata_map["gpurobot"])
  height, width, frames = facts["inputs"]["camera"]["shape"]
  model = mujoco.MjModel.from_xml_path(robot_file)
  data = mujoco.MjData(model)
  data.qpos[:] = 0.1, 0.1  # cart [m], pole [rad]
  mujoco.mj_forward(model, data)
  angles = []
  with mujoco.Renderer(model, height, width) as renderer:
    seen = [see(renderer, data)] * frames
    for _ in range(steps):
      seen = [*seen[1:], see(renderer, data)]  # the oldest first
      (data.ctrl[:],) = policy.run(["ctrl"], {"camera": np.concatenate(seen, -1)[None]})[0]
      mujoco.mj_step(model, data, facts["settings"]["substeps"])
      angles.append(data.qpos[1])
  return np.array(angles)


if __name__ == "__main__":
  parser = ArgumentParser(description="Let an exported policy of cartpole_pixels act in plain MuJoCo.")
  parser.add_argument("policy", help="policy.onnx that gpurobot export has written")
  parser.add_argument("robot", help="robot file with the camera")
  given = parser.parse_args()
  angle = balance(given.policy, given.robot, steps=500)
  print("largest angle of the pole", np.abs(angle).max().round(2), "rad")
