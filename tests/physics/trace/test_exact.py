"""Programs on numbers at addresses, with the rounding of IEEE 754."""

import numpy as np
import torch

from physics.trace.exact import exact_kernel
from physics.trace.kernel import CPU_LANES
from physics.trace.launcher import Launcher
from physics.trace.trace import Mask, Program, Scalar
from physics.trace.value import Long

ENVS = 2 * CPU_LANES


def run(number: int, programs: list[Program], *cells: np.ndarray) -> None:
  """Run one of some programs on cells."""
  kernel = exact_kernel(programs)
  launcher = Launcher([kernel], torch.device("cpu"), ENVS // CPU_LANES, 1)
  at = np.array([cell.ctypes.data for cell in cells])
  launcher.run(launcher.record([number, torch.from_numpy(at)]).launches)


def test_numbers_lie_side_by_side_or_apart_or_are_one_for_all():
  near, far = np.arange(ENVS, dtype=np.float32), np.zeros((ENVS, 3), np.float32)
  far[:, 0] = 100 * near
  one, program, other = np.float32([7]), Program(), Program()
  total = program.op("add", Scalar, program.fetch(Scalar, 0, 0, 4), program.fetch(Scalar, 1, 0, 12))
  program.keep(1, 4, 12, program.op("add", Scalar, total, program.fetch(Scalar, 2, 0, 0)))
  other.keep(0, 0, 4, other.op("neg", Scalar, other.fetch(Scalar, 0, 0, 4)))
  run(0, [program, other], near, far, one)
  np.testing.assert_array_equal(far[:, 1], 101 * np.arange(ENVS) + 7)
  np.testing.assert_array_equal(far[:, 2], 0)
  run(1, [program, other], near, far, one)
  np.testing.assert_array_equal(near, -np.arange(ENVS))


def test_truth_is_a_byte_and_integers_have_64_bits():
  words, mask = np.arange(ENVS, dtype=np.int64) << 40, np.arange(ENVS) % 3 == 0
  program = Program()
  found, own = program.fetch(Mask, 1, 0, 1), program.fetch(Long, 0, 0, 8)
  program.keep(0, 0, 8, program.op("pick", Long, found, program.op("bitwise_not", Long, own), own))
  program.keep(1, 0, 1, program.op("not", Mask, found))
  run(0, [program], words, mask)
  own = np.arange(ENVS, dtype=np.int64) << 40
  np.testing.assert_array_equal(mask, np.arange(ENVS) % 3 != 0)
  np.testing.assert_array_equal(words, np.where(mask, own, ~own))


def test_a_product_and_a_sum_round_twice_and_small_numbers_stay():
  x, small = np.full(ENVS, 1 + 2**-12, np.float32), np.full(ENVS, 1e-40, np.float32)
  program = Program()
  own = program.fetch(Scalar, 0, 0, 4)
  program.keep(0, 0, 4, program.op("add", Scalar, program.op("mul", Scalar, own, own), own))
  program.keep(1, 0, 4, program.op("neg", Scalar, program.fetch(Scalar, 1, 0, 4)))
  expected = (x * x) + x
  run(0, [program], x, small)
  np.testing.assert_array_equal(x, expected)
  np.testing.assert_array_equal(small, np.float32(-1e-40))
