"""Compilation: one kernel per program, which the next process finds, without a word on the console."""

import hashlib
import os
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
import warp as wp

from physics.state.layout import Layout
from physics.step import trace_step
from physics.trace import kernel
from physics.trace.kernel import CPU_LANES, build_kernel, lanes_on, padded
from physics.trace.trace import Program
from tests.physics import conftest

LAUNCH = """
from tests.physics.trace.test_kernel import cube, digest, launch
assert launch(cube(0.5)).tolist() == [0.0, 0.5, 4.0, 13.5] * 4
print(digest())
"""
START = "from physics.trace.kernel import kernel_cache, start_warp; start_warp(); kernel_cache()"


def square():
  """Trace a step that writes the square of a row to the next one."""
  program = Program()
  for name in ("substeps", "stride", "integrate"):
    program.parameter(name)
  x = program.read_memory("state", 0)
  program.write_memory("state", 1, x * x)
  return program.finish()


def loop():
  """Trace a step that adds a row up."""
  program = Program()
  substeps, *_ = (program.parameter(name) for name in ("substeps", "stride", "integrate"))
  total = program.variable(0.0)
  with program.loop(substeps):
    total[0] = total[0] + program.read_memory("control", 0)
  program.write_memory("state", 0, total[0])
  return program.finish()


def launch(program, first=0, groups=1):
  step = build_kernel(program, "cpu")
  state = np.tile(np.arange(4.0, dtype=np.float32), (2, groups * CPU_LANES // 4))
  memory = [wp.array(x, dtype=wp.float32, device="cpu") for x in (state, state[:1], state[:1])]
  wp.launch(step, groups - first, inputs=[first, 1, 0, 0, *memory], device="cpu", block_dim=1)
  return memory[0].numpy()[1]


@pytest.mark.parametrize(("device", "lanes"), [("cpu", CPU_LANES), ("cuda", 1), ("cuda:1", 1)])
def test_a_cpu_thread_has_lanes_and_a_cuda_thread_one(device, lanes):
  assert lanes_on(device) == lanes


@pytest.mark.parametrize(
  ("num_envs", "device", "room"),
  [(1, "cpu", 16), (16, "cpu", 16), (33, "cpu", 48), (1, "cuda", 32), (64, "cuda:1", 64), (65, "cuda", 96)],
)
def test_memory_is_of_whole_lane_groups_or_whole_warps(num_envs, device, room):
  assert padded(num_envs, device) == room


def test_on_cuda_loops_are_not_unrolled_and_warp_makes_machine_code(monkeypatch):
  texts, write = [], kernel.native_source
  monkeypatch.setattr(kernel, "native_source", lambda *a, **k: texts.append(write(*a, **k)) or texts[-1])
  build_kernel(loop(), "cuda")
  monkeypatch.setattr(kernel, "CUDA", kernel.CudaBuild(unroll=True))
  build_kernel(loop(), "cuda")
  rolled, unrolled = texts
  assert rolled.count("#pragma unroll 1\n") == 1
  assert rolled.replace("#pragma unroll 1\n", "") == unrolled
  assert wp.config.cuda_output == "cubin"


def test_a_launch_starts_at_its_first_group():
  found = launch(square(), first=1, groups=3).reshape(3, CPU_LANES)
  numbers = np.tile(np.arange(4.0), CPU_LANES // 4)
  np.testing.assert_array_equal(found, [numbers, numbers**2, numbers**2])


def run(code: str, cache: Path) -> tuple[str, str]:
  """Run in a process of its own; return what it prints and its errors."""
  environment = os.environ | {"WARP_CACHE_PATH": str(cache), "PYTHONHASHSEED": "2"}
  result = subprocess.run(
    [sys.executable, "-c", code],
    cwd=conftest.ROOT,
    env=environment,
    capture_output=True,
    text=True,
    check=True,
  )
  return result.stdout, result.stderr


def cube(factor):
  """Trace a step that writes a row's cubes, times a factor, to the next one: no other test's kernel."""
  program = Program()
  for name in ("substeps", "stride", "integrate"):
    program.parameter(name)
  x = program.read_memory("state", 0)
  program.write_memory("state", 1, factor * x * x * x)
  return program.finish()


@pytest.fixture
def cache(monkeypatch):
  """Warp's cache in another place, which is put back after the test; it returns the way to move it."""
  kernel.start_warp()
  monkeypatch.setattr(wp.config, "kernel_cache_dir", wp.config.kernel_cache_dir)
  return lambda place: setattr(wp.config, "kernel_cache_dir", str(place))


def load(program):
  kernel.load_kernel(build_kernel(program, "cpu"), wp.get_device("cpu"), 1)


def objects(cache: Path) -> dict[Path, tuple[int, int]]:
  """Return inode and time of change of every compiled object."""
  return {path: (path.stat().st_ino, path.stat().st_mtime_ns) for path in cache.rglob("*.o")}


def digest():
  """Return a digest of the source of a model with every kind of contact, in lanes and scalar."""
  model = conftest.load("self_contact")
  program = trace_step(model, Layout(model))
  text = "".join(kernel.native_source(program, lanes) for lanes in (16, 1))
  return hashlib.sha256(text.encode()).hexdigest()


def test_the_next_process_writes_the_same_source_and_finds_the_compiled_kernel(cache, tmp_path):
  place = tmp_path / wp.__version__  # where Warp keeps kernels in WARP_CACHE_PATH
  place.mkdir()
  cache(place)
  load(cube(0.5))
  compiled = objects(tmp_path)
  assert len(compiled) == 1
  assert run(LAUNCH, tmp_path) == (f"{digest()}\n", "")
  assert objects(tmp_path) == compiled


def test_threads_build_with_one_header_and_without_a_damaged_one(cache, capfd, tmp_path):
  cache(tmp_path)
  load(cube(4.5))
  (header,) = tmp_path.rglob("*.pch")
  made = header.stat()
  with ThreadPoolExecutor(1) as other:
    other.submit(load, cube(4.75)).result()
  assert (header.stat().st_ino, header.stat().st_mtime_ns) == (made.st_ino, made.st_mtime_ns)
  header.write_bytes(b"")
  assert launch(cube(5.0)).tolist()[:4] == [0.0, 5.0, 40.0, 135.0]
  assert not header.exists()
  assert "retrying without precompiled headers" in capfd.readouterr().err


def test_a_cache_that_cannot_be_made_is_replaced_by_one_of_this_process(cache, caplog, tmp_path):
  (tmp_path / "file").write_text("")
  cache(tmp_path / "file" / "kernels")
  load(cube(1.25))
  assert launch(cube(1.25)).tolist()[:4] == [0.0, 1.25, 10.0, 33.75]
  (told,) = [record.message for record in caplog.records if record.levelname == "WARNING"]
  assert told.startswith(
    f"kernels cannot be kept in {tmp_path / 'file' / 'kernels'} (Not a directory): this "
  )
  assert list(kernel.kernel_cache().rglob("*.o"))


def test_a_cache_on_a_full_disk_is_replaced_before_anything_is_written(cache, caplog, monkeypatch, tmp_path):
  cache(tmp_path)
  usage = shutil.disk_usage
  full = usage(tmp_path)._replace(free=1000)
  monkeypatch.setattr(shutil, "disk_usage", lambda place: full if Path(place) == tmp_path else usage(place))
  load(cube(1.5))
  assert "No space left on device" in caplog.text
  assert not list(tmp_path.rglob("*"))


def test_where_every_disk_is_full_an_error_says_so(cache, monkeypatch, tmp_path):
  cache(tmp_path)
  full = shutil.disk_usage(tmp_path)._replace(free=1000)
  monkeypatch.setattr(shutil, "disk_usage", lambda _: full)
  with pytest.raises(OSError, match="No space left on device"):
    load(cube(1.75))


def test_a_kernel_that_is_kept_needs_no_room(cache, caplog, monkeypatch, tmp_path):
  cache(tmp_path)
  load(cube(2.25))
  full = shutil.disk_usage(tmp_path)._replace(free=0)
  monkeypatch.setattr(shutil, "disk_usage", lambda _: full)
  caplog.clear()
  kernel.build_kernel.cache_clear()
  load(cube(2.25))
  assert not caplog.records


def test_a_process_without_a_place_for_kernels_goes_on(tmp_path):
  (tmp_path / "file").write_text("")
  printed, errors = run(START, tmp_path / "file")
  (line,) = errors.splitlines()
  assert not printed
  assert line.startswith(f"kernels cannot be kept in {tmp_path / 'file'}")


@pytest.mark.parametrize(
  "case",  # modes of the folder around the cache and of the cache, user 1000's; this user; what is told
  [
    ((0o755, 0o755), 1000, ""),
    ((0o755, 0o775), 1000, ""),  # a group shares it
    ((0o1777, 0o700), 1000, ""),  # in /tmp
    ((0o755, 0o777), 1000, "every user may write to {place}/cache: chmod o-w"),
    ((0o755, 0o1777), 1000, "every user may write to {place}/cache: chmod o-w"),
    ((0o777, 0o755), 0, "every user may write to {place}: chmod o-w"),
    ((0o755, 0o755), 1001, "it is user 1000's"),
    ((0o755, 0o755), 0, ""),  # in a container
  ],
)
def test_a_cache_that_others_may_write_is_not_used(case, cache, caplog, monkeypatch, tmp_path):
  modes, user, told = case
  place = tmp_path / "cache"
  place.mkdir()
  (place / "wp_kernel").mkdir()
  (tmp_path.chmod(modes[0]), place.chmod(modes[1]), os.chown(place, 1000, 1000))
  monkeypatch.setattr(os, "getuid", lambda: user)
  kernel._foreign.cache_clear()
  cache(place)
  used = kernel.kernel_cache()
  assert (used == place) == (not told)
  assert (f"kernels cannot be kept in {place} ({told.format(place=tmp_path)}): this " in caplog.text) == bool(
    told
  )


def test_a_kernel_that_others_may_write_is_removed(cache, tmp_path):
  cache(tmp_path)
  before = os.umask(0)
  load(cube(3.5))
  os.umask(before)
  (built,) = tmp_path.rglob("*.o")
  assert not any(path.stat().st_mode & 0o002 for path in (built, built.parent))
  load(cube(3.5))
  assert built.exists()
  built.parent.chmod(0o777)
  load(cube(3.5))  # this process has loaded it already, so it builds no other
  assert not built.exists()
