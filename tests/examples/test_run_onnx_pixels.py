import numpy as np
import onnxruntime

import train
from examples import run_onnx_pixels
from gpurobot import export
from gpurobot.deploy.exported import NAMES
from tasks import cartpole_pixels


def test_a_policy_sees_in_plain_mujoco(tmp_path, monkeypatch):
  """The renderer is a stand-in for OpenGL, which is not everywhere."""
  train.main(
    ["task=cartpole_pixels", "num_envs=16", "ppo.horizon=4", "max_iterations=1", f"run_dir={tmp_path}"]
  )
  export.main([f"checkpoint={tmp_path}"])
  robot = tmp_path / "cart.xml"
  robot.write_text(cartpole_pixels.Task.scene(cartpole_pixels.Config()))
  drawn = []

  class Renderer:
    def __init__(self, _model, height, width):
      self.shape = (height, width, 3)

    def __enter__(self):
      return self

    def __exit__(self, *_):
      pass

    def update_scene(self, data, camera):
      assert camera == "side"
      drawn.append(data.qpos[1])

    def render(self):
      return np.full(self.shape, 10 * len(drawn), np.uint8)

  monkeypatch.setattr("mujoco.Renderer", Renderer)
  angles = run_onnx_pixels.balance(str(tmp_path / "export" / NAMES[0]), str(robot), 5)
  assert drawn[0] == 0.1
  assert drawn[2:] == list(angles[:-1])
  (known,) = onnxruntime.InferenceSession(tmp_path / "export" / NAMES[0]).get_inputs()
  assert (known.name, known.type, known.shape[1:]) == ("camera", "tensor(uint8)", [32, 32, 3])
