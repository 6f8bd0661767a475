"""Farthest vertices of hulls of all sizes, against all of their vertices."""

import numpy as np
import pytest
import warp as wp

from physics.convex.hull import Hulls
from physics.trace import kernel
from physics.trace.emit_numpy import numpy_function
from physics.trace.trace import Program, where
from tests.physics.convex.test_hull import hulls_of, points_of

ENVS = 64
SIZES = (6, 40, 700)  # one cluster, a few, and more than a vector holds
PARAMETERS = ("substeps", "stride", "integrate")


def balls():
  """Return hulls of points on spheres, each of which is a vertex."""
  random = np.random.default_rng(0)
  clouds = [random.normal(size=(size, 3)) for size in SIZES]
  return hulls_of(*(cloud / np.linalg.norm(cloud, axis=1)[:, None] for cloud in clouds))


def traced(hulls: Hulls) -> Program:
  """Trace a search in a hull of each lane's own, and one in the hull of all."""
  program = Program()
  for name in PARAMETERS:
    program.parameter(name)
  hull, *direction, asks = (program.read_memory("control", row) for row in range(5))
  own = program.farthest(hulls.clusters, hull, direction, asks > 0.0)
  program.write_memory("state", 0, where(asks > 0.0, own, -1.0))
  with program.loop(len(SIZES)) as k:
    program.write_memory("state", k + 1, program.farthest(hulls.clusters, k + 2, direction, True))
  return program.finish()


@pytest.mark.parametrize("lanes", [16, 1, None], ids=["lanes", "one", "numpy"])
def test_no_vertex_is_farther(lanes, monkeypatch):
  hulls, random = balls(), np.random.default_rng(1)
  assert [hulls.count(k) for k in (2, 3, 4)] == list(SIZES)
  numbers, directions = random.integers(2, 5, ENVS), random.normal(size=(3, ENVS))
  directions /= np.linalg.norm(directions, axis=0)
  asks = random.uniform(-1.0, 1.0, ENVS)
  inputs = np.concatenate([numbers[None], directions, asks[None]]).astype(np.float32)
  program, found = traced(hulls), np.zeros((4, ENVS), np.float32)
  if lanes is None:
    numpy_function(program)(1, 0, 1, control=inputs, state=found)
  else:
    monkeypatch.setattr(kernel, "CPU_LANES", lanes)
    memory = [wp.array(rows, dtype=wp.float32, device="cpu") for rows in (found, inputs, inputs)]
    step = kernel.build_kernel(program, "cpu")
    wp.launch(step, ENVS // lanes, inputs=[0, 1, 0, 1, *memory], device="cpu", block_dim=1)
    found = memory[0].numpy()
  vertices, columns = np.array(hulls.vertices).T, [numbers, *np.full((3, ENVS), [[2], [3], [4]])]
  silent = asks <= 0.0
  np.testing.assert_array_equal(found[0, silent], -1.0)
  for row, chosen, asked in zip(found, columns, (~silent, *[np.full(ENVS, True)] * 3), strict=True):
    for env in np.flatnonzero(asked):
      along = points_of(hulls, chosen[env]) @ directions[:, env]
      assert vertices[int(row[env])] @ directions[:, env] > along.max() - 1e-6
