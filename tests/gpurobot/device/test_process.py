import gc
import os
import subprocess
import sys
from pathlib import Path

import pytest

from gpurobot.device import process
from physics.trace import threads

MEASURE = """
import ctypes, pathlib
from gpurobot.device import process
{call}
def resident():
  return int(pathlib.Path("/proc/self/statm").read_text().split()[1]) * 4096
kept = [bytearray(b"1") * 2**24 for _ in range(8)]
address, inside, large = ctypes.addressof(ctypes.c_char.from_buffer(kept[0])), False, None
for line in pathlib.Path("/proc/self/smaps").read_text().splitlines():
  name, *values = line.split()
  if "-" in name:
    start, end = (int(number, 16) for number in name.split("-"))
    inside = start <= address < end
  elif inside and name == "VmFlags:":
    large = "hg" in values
before = resident()
del kept
print(before - resident(), large)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="only glibc has the setting")
def test_freed_memory_stays_and_large_pages_are_asked_for():
  """Of eight buffers of 16 MiB."""
  kept, asked = printed(MEASURE.format(call="process.keep_memory()"))
  assert int(kept) < 2**20 < 64 * 2**20 < int(printed(MEASURE.format(call=""))[0])
  if Path("/sys/kernel/mm/transparent_hugepage").is_dir():
    assert asked == "True"


def test_openmp_threads_spin_briefly_unless_the_user_says_otherwise():
  read = "import os, gpurobot; print(os.environ['GOMP_SPINCOUNT'])"
  for own, expected in (({}, "10000"), ({"GOMP_SPINCOUNT": "7"}, "7")):
    assert printed(read, own) == [expected]


@pytest.mark.parametrize("usable_cores", [process.usable_cores, threads.usable_cores])
def test_the_cores_are_those_of_the_process_or_all(usable_cores, monkeypatch):
  monkeypatch.setattr(os, "sched_getaffinity", lambda _pid: {0, 3, 5}, raising=False)
  assert usable_cores() == 3
  monkeypatch.delattr(os, "sched_getaffinity")
  monkeypatch.setattr(os, "cpu_count", lambda: 7)
  assert usable_cores() == 7


@pytest.mark.parametrize("enabled", [True, False])
def test_the_garbage_collector_pauses_and_leaves_alone_what_was_made(enabled, monkeypatch):
  frozen = []
  monkeypatch.setattr(gc, "freeze", lambda: frozen.append(gc.isenabled()))
  before = gc.isenabled()
  try:
    (gc.enable if enabled else gc.disable)()
    with process.collection_paused():
      assert not gc.isenabled()
    assert gc.isenabled() == enabled
  finally:
    (gc.enable if before else gc.disable)()
  assert frozen == [False] * enabled


STARTED = """
import gc, sys
sys.argv, sys.orig_argv = ["-m"], ["python", "-m", "{module}"]  # while Python looks for it
import gpurobot
print(gc.isenabled())
from gpurobot.shell import cli
from gpurobot.device.distributed import World
with cli.user_errors([], World()):
  print(gc.isenabled(), gc.get_freeze_count())
"""


def printed(code: str, environment: dict[str, str] | None = None) -> list[str]:
  return subprocess.check_output([sys.executable, "-c", code], env=environment, text=True).split()


def test_a_program_is_imported_without_a_look_for_garbage():
  early, enabled, count = printed(STARTED.format(module="gpurobot.play"))
  assert (early, enabled) == ("False", "True")
  assert int(count) > 100_000
  early, enabled, count = printed(STARTED.format(module="another.play"))
  assert (early, enabled, count) == ("True", "True", "0")
