"""Two cores in random poses, traced."""

import numpy as np

from physics.algebra.spatial import Matrix, Vector
from physics.convex.core import Core
from physics.convex.hull import Hulls
from physics.trace.emit_numpy import numpy_function
from physics.trace.trace import Program

HULLS = Hulls.of(None, [])


def random_poses(count, scale, seed=0):
  """Return positions [2, 3, count] and rotations [2, 3, 3, count]."""
  random = np.random.default_rng(seed)
  rotations = np.linalg.qr(random.normal(size=(2, count, 3, 3)))[0]
  rotations *= np.linalg.det(rotations)[..., None, None]
  return random.normal(scale=scale, size=(2, 3, count)), rotations.transpose(0, 2, 3, 1)


def run(function, kinds, sizes, poses, dtype=np.float64):
  """Return what a function of two cores computes, [result, lane]."""
  positions, rotations = poses
  rows = np.concatenate(
    [np.concatenate([p, r.reshape(9, -1)]) for p, r in zip(positions, rotations, strict=True)]
  )
  program, cores = Program(), []
  numbers = [program.read_memory("inputs", row) for row in range(len(rows))]
  for i, (kind, size) in enumerate(zip(kinds, sizes, strict=True)):
    pose = numbers[12 * i : 12 * i + 12]
    rotation = Matrix(*(Vector(*pose[k : k + 3]) for k in (3, 6, 9)))
    cores.append(Core(program, Vector(*pose[:3]), rotation, size, kind, (kind,), 0, HULLS))
  results = list(function(*cores))
  for i, result in enumerate(results):
    program.write_memory("outputs", i, result)
  outputs = np.full((len(results), rows.shape[1]), np.nan, dtype)
  with np.errstate(all="ignore"):
    numpy_function(program.finish())(inputs=rows.astype(dtype), outputs=outputs)
  return outputs
