"""One of UniLab's engines in its own process: unilab_peer.py <engine> <scene> <threads> <file> <runs>.

The file has a situation: qpos and qvel [num_envs, n], controls [steps, num_envs, nu], the timestep [s] and
the substeps of a control step. The engine runs it from its start, and prints the processor seconds of each
run. This file imports nothing of the project, because the engines need another MuJoCo than ours.
"""

import importlib
import sys
import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

Run = Callable[[], None]  # a run of the situation


def mujoco_uni(scene: str, threads: int, given: dict[str, Any]) -> Iterator[Run]:
  """Yield runs of MuJoCoUni, which steps batches by MuJoCo C, with the sensors that UniLab asks for."""
  mujoco, batch = (importlib.import_module(name) for name in ("mujoco", "mujoco_uni.batch_env"))
  model = mujoco.MjModel.from_xml_path(scene)
  model.opt.timestep = given["timestep"]
  qpos, qvel, substeps = given["qpos"], given["qvel"], int(given["substeps"])
  size = mujoco.mj_stateSize(model, mujoco.mjtState.mjSTATE_FULLPHYSICS)
  start = np.zeros((len(qpos), size))
  start[:, 1 : 1 + model.nq + model.nv] = np.hstack([qpos, qvel])  # after the time
  pool = batch.BatchEnvPool(model, nbatch=len(qpos), nthread=threads)

  def run() -> None:
    state = start
    for ctrl in given["controls"]:
      control = np.broadcast_to(ctrl[:, None], (len(ctrl), substeps, model.nu))
      state, _ = pool.step(state, nstep=substeps, control=control, return_sensor=True)

  while True:
    yield run


def motrix(scene: str, threads: int, given: dict[str, Any]) -> Iterator[Run]:
  """Yield runs of MotrixSim with the number of solver iterations that UniLab sets."""
  motrixsim = importlib.import_module("motrixsim")
  motrixsim.init_thread_pool(num_threads=threads)
  model = motrixsim.load_model(scene)
  model.options.timestep, model.options.max_iterations = float(given["timestep"]), 3
  qpos, qvel = (np.ascontiguousarray(given[name], dtype=np.float32) for name in ("qpos", "qvel"))
  qpos[:, 3:7] = np.roll(qpos[:, 3:7], -1, axis=1)  # its quaternions are (x, y, z, w)
  data = motrixsim.SceneData(model, batch=[len(qpos)])

  def run() -> None:
    for ctrl in given["controls"].astype(np.float32):
      data.actuator_ctrls = ctrl
      model.step_n(data, int(given["substeps"]))

  while True:
    data.reset(model, qpos, qvel, forward_kinematic=True)
    yield run


def main(engine: str, scene: str, threads: str, file: str, count: str) -> None:
  """Run the situation in the file."""
  with np.load(file) as arrays:
    runs = {"mujoco_uni": mujoco_uni, "motrix": motrix}[engine](scene, int(threads), dict(arrays))
  for _ in range(int(count)):
    run = next(runs)
    begin = time.process_time()
    run()
    print("seconds", time.process_time() - begin, flush=True)


if __name__ == "__main__":
  main(*sys.argv[1:])
