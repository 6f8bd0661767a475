"""The search for the closest points as a float32 kernel."""

import numpy as np
import torch

from physics import Simulation
from physics.load import load_model
from physics.parity import NumpySimulation

EGG_AT_AN_EDGE = """<mujoco><worldbody><geom name="table" type="box" size="0.5 0.4 0.1"/>
  <body><freejoint/><geom name="egg" type="ellipsoid" size="0.06 0.05 0.08"/></body></worldbody>
  <sensor><distance cutoff="0.01" geom1="table" geom2="egg"/></sensor></mujoco>"""


def test_an_edge_far_longer_than_the_gap_takes_no_digits_of_it():
  """Triangles on both ends of the edge are slivers, whose nearest points rounding moves along it."""
  model, random = load_model(EGG_AT_AN_EDGE), np.random.default_rng(0)
  kernel = Simulation(model, 256, threads=1, outputs=("sensordata",))
  exact = NumpySimulation(model, 256, ("sensordata",))
  place, turn = random.uniform(-0.4, 0.4, 256), random.normal(size=(256, 4))
  turn /= np.linalg.norm(turn, axis=1, keepdims=True)
  away = np.array([0.0, 1.0, 1.0]) / np.sqrt(2.0)
  qpos = np.hstack([np.outer(place, [1.0, 0.0, 0.0]) + [0.0, 0.4, 0.1] + 0.07 * away, turn])
  for _ in range(3):  # towards a distance of 20 um, along the diagonal
    exact.qpos[:] = torch.from_numpy(qpos)
    exact.forward()
    gap = exact.sensordata.numpy()[:, :1]
    qpos[:, :3] += away * (2e-5 - gap)
  kernel.qpos[:] = exact.qpos[:] = torch.from_numpy(qpos).float()
  kernel.forward(), exact.forward()
  error = np.abs(kernel.sensordata.double() - exact.sensordata).flatten()
  assert np.median(error) < 7e-7  # 1.1e-6 before the weights were refined
