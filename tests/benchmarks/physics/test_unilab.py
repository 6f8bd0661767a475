"""UniLab's engines beside ours, with stand-ins for these in the peers' processes."""

import sys

from benchmarks import report
from benchmarks.physics import unilab

SCENE = """<mujoco><worldbody><geom type="plane" size="1 1 1"/>
  <body pos="0 0 0.3"><freejoint/><geom size="0.1"/>
    <body pos="0.2 0 0"><joint name="hinge" axis="0 1 0" range="-1 1"/><geom size="0.05"/></body></body>
  </worldbody><actuator><position joint="hinge" kp="2" kv="0.1" ctrlrange="-1 1"/></actuator></mujoco>"""
# What the benchmark asks of the engines. They end at once where they are asked for something else.
ENGINES = {
  "mujoco_uni/__init__.py": "",
  "mujoco_uni/batch_env.py": """
class BatchEnvPool:
  def __init__(self, model, nbatch, nthread):
    assert (model.opt.timestep, nbatch, nthread) == (0.004, 16, 1)

  def step(self, state, nstep, control, return_sensor):
    assert state.shape == (16, 1 + 8 + 7) and control.shape == (16, nstep, 1) and return_sensor
    assert not state[:, 0].any() and (state[:, 3] > 0).all()  # the time, and the height
    return state, None
""",
  "motrixsim.py": """
from types import SimpleNamespace
import numpy as np

def init_thread_pool(num_threads):
  print("the engine says something")
  assert num_threads == 1

def load_model(scene):
  return SimpleNamespace(options=SimpleNamespace(), step_n=step_n)

def step_n(data, nstep):
  assert data.actuator_ctrls.shape == (16, 1) and data.actuator_ctrls.dtype == np.float32

class SceneData:
  def __init__(self, model, batch):
    assert batch == [16] and (model.options.timestep, model.options.max_iterations) == (0.004, 3)

  def reset(self, model, qpos, qvel, forward_kinematic):
    assert qpos.shape == (16, 8) and qvel.shape == (16, 7) and (abs(qpos[:, 6]) > 0.9).all()  # w is last
""",
}


def test_engines_run_the_same_situation(tmp_path, monkeypatch, capsys):
  for name, text in ENGINES.items():
    (tmp_path / name).parent.mkdir(exist_ok=True)
    (tmp_path / name).write_text(text)
  scene = tmp_path / "ball" / "scene.xml"
  scene.parent.mkdir()
  scene.write_text(SCENE)
  monkeypatch.setenv("PYTHONPATH", str(tmp_path))
  words = [f"python={sys.executable}", f"scene={scene}", "timestep=0.004", "num_envs=16", "warm=1"]
  unilab.run([*words, "repetitions=2"])
  found = report.read(capsys.readouterr().out)
  assert {f"unilab.ball.threads1.{name}" for name in ("gpurobot", *unilab.PEERS)} <= found.keys()
  ratios = [found[f"unilab.ball.threads1.{name}.ratio"] for name in unilab.PEERS]
  assert all(ratio > 0 for ratio in ratios)
  assert found["unilab.ball.threads1.overflow"] == 0
