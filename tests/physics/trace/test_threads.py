"""CPU threads: kernels with large arrays run whatever `ulimit -s` says, or one line says why not."""

import re
import subprocess
import sys
import threading

import pytest

from physics import Simulation, load_model
from physics.trace import threads
from physics.trace.threads import SPARE, UNLIMITED, fits_caller, stack_bytes, start_threads
from physics.trace.trace import Index, Program
from tests.physics.conftest import ROOT

MODEL = """<mujoco><worldbody><geom type="plane" size="5 5 1"/>
  <body pos="0 0 0.1"><freejoint/><geom size="0.1"/></body>
  <body pos="0 0 0.3"><freejoint/><geom size="0.1"/></body></worldbody></mujoco>"""
CAPACITY = 1000  # contacts: 3.5 MB of arrays
STEPS = """
from tests.physics.trace.test_threads import stepped
print(stepped(1), stepped(2), sep="\\n")
"""


def stepped(count):
  simulation = Simulation(load_model(MODEL), 40, threads=count, moving_capacity=CAPACITY)
  simulation.step(50)
  return simulation.qpos[[0, 39]].tolist()


@pytest.mark.parametrize("limit", ["256", "unlimited"])
def test_kernels_with_large_arrays_run_whatever_the_stack_of_a_process(limit):
  words = f'ulimit -s {limit} && exec "$@"'
  result = subprocess.run(
    ["sh", "-c", words, "sh", sys.executable, "-c", STEPS],
    cwd=ROOT,
    capture_output=True,
    text=True,
    check=False,
  )
  assert (result.returncode, result.stdout) == (0, f"{stepped(2)}\n" * 2), result.stderr


def test_a_stack_holds_the_arrays_of_the_largest_program():
  small, large = Program(), Program()
  small.array(8)
  large.array(1000)
  large.array(1000, Index)
  assert stack_bytes([small, large]) == SPARE + 17 * 4096  # 64,000 and 4,000 bytes, in whole pages


def test_the_caller_runs_what_fits_on_its_stack(monkeypatch):
  for limit, room in ((1 << 23, 1 << 23), (threads.resource.RLIM_INFINITY, UNLIMITED)):
    monkeypatch.setattr(threads.resource, "getrlimit", lambda _, limit=limit: (limit, limit))
    assert fits_caller(room)
    assert not fits_caller(room + 1)


def test_threads_have_the_stack_and_later_ones_do_not():
  before = threading.stack_size()
  pool = start_threads(3, 1 << 24)
  assert {pool.submit(threading.stack_size).result(), threading.stack_size()} == {before}
  assert len(pool._threads) == 3


def test_stacks_that_the_system_refuses_are_named_in_one_line():
  before = threading.stack_size()
  message = "need a stack of 140,737,488,355,328 bytes in each of 3 CPU threads; the system has no room"
  with pytest.raises(OSError, match=re.escape(message)):
    start_threads(3, 1 << 47)  # all addresses that a process has
  assert threading.stack_size() == before
