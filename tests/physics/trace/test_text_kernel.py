import os
import subprocess
import sys
import time

import numpy as np
import pytest

from gpurobot.device import process
from physics.trace import text_kernel
from physics.trace.text_kernel import TextKernel

PREAMBLE = "float* const x = (float*)base[0] + block * 4;"
BODIES = ["for (int i = 0; i < 4; ++i) x[i] = x[i] * *(float*)number + 1;", "x[place[0]] = 7;"]


def test_functions_run_for_each_block():
  kernel, x = TextKernel(PREAMBLE, BODIES), np.arange(12, dtype=np.float32)
  arrays = (
    np.array([x.ctypes.data]),
    np.array([2]),
    np.array([3.0]).astype(np.float32).view(np.int32).astype(np.int64),
  )
  first, second = (kernel.launch(index, 3, arrays) for index in range(2))
  first()
  assert kernel.built
  np.testing.assert_array_equal(x, np.arange(12) * 3 + 1)
  second()
  np.testing.assert_array_equal(x[2::4], 7)


def test_a_product_and_a_sum_round_twice():
  x = np.full(4, 1 + 2**-12, np.float32)
  arrays = np.array([x.ctypes.data]), np.array([0]), x[:1].view(np.int32).astype(np.int64)
  TextKernel(PREAMBLE, BODIES).launch(0, 1, arrays)()
  np.testing.assert_array_equal(x, np.float32(np.float32((1 + 2**-12) ** 2) + np.float32(1)))


def wait(ended) -> None:
  for _ in range(6000):
    if ended():
      return
    time.sleep(0.1)
  raise TimeoutError


def test_another_process_builds_them(monkeypatch, tmp_path):
  bodies = [f"x[0] = {time.time()};"]
  kernel = TextKernel(PREAMBLE, bodies)
  assert not kernel.built
  wait(kernel.build(process.python))
  assert kernel.built


def test_a_text_that_is_no_cpp_is_said(caplog):
  kernel = TextKernel(PREAMBLE, [f"no {time.time()}"])
  wait(kernel.build(process.python))
  assert not kernel.built
  assert text_kernel.NOT_BUILT in caplog.text


def test_a_process_that_ends_leaves_no_build_behind():
  code = (
    "from physics.trace.text_kernel import TextKernel, subprocess; import time\n"
    "from gpurobot.device import process\n"
    "old = subprocess.Popen\n"
    "subprocess.Popen = lambda *a, **k: print((p := old(*a, **k)).pid) or p\n"
    "TextKernel('', [f'int x = {time.time()};']).build(process.python)"
  )
  done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
  with pytest.raises(ProcessLookupError):
    os.kill(int(done.stdout.split()[-1]), 0)


def test_a_process_that_cannot_start_is_said(monkeypatch, caplog):
  def fail(*_: object, **__: object) -> None:
    raise OSError("no more processes")

  monkeypatch.setattr(text_kernel.subprocess, "Popen", fail)
  assert TextKernel(PREAMBLE, [f"x[0] = {time.time()};"]).build(process.python)()
  assert f"{text_kernel.NOT_BUILT} (no more processes)" in caplog.text
