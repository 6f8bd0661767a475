"""A GPU's speed on code as large as ours: python -m benchmarks.visit part=fetch, or part=kernels.

`fetch`: straight-line code of 32 to 1,024 KB, run again and again by a few warps on every multiprocessor, for
what an instruction costs where it no longer lies in a cache. `kernels`: the physics alone, from 4,096
environments to a million, its loops left as they are, or unrolled (`unroll=true`). Prints `name: value` lines
as it goes.
"""

import dataclasses
import enum
import statistics
import sys
from collections.abc import Sequence
from typing import Any

import torch
import warp as wp

import physics
from benchmarks import cases, engine, models
from benchmarks.cuda import unrolled
from benchmarks.on_device import Own, controls_of, timed
from benchmarks.report import line
from gpurobot.config import ConfigError, assign, leaves, option, pairs
from gpurobot.device.distributed import World
from physics.trace import kernel
from physics.trace.kernel import CUDA_BLOCK, start_warp

CASES = {case.name: case for case in cases.PHYSICS}
CHOSEN = ["ant", "humanoid_heap", "quadruped_on_rough_ground", "hand_holding_cube"]
SIZES = [4096, 16384, 65536, 1048576]
CACHED = 8  # KB of code that the nearest cache holds: what the others are compared with
KILOBYTES = (CACHED, 32, 64, 128, 256, 512, 1024)
WARPS = (1, 4, 8)  # on each multiprocessor
INSTRUCTION = 16  # bytes
PIECE = 256  # instructions in one statement; of them four chains do not wait for each other
FEW, MANY = 4, 36  # passes over the code, whose difference is timed: both begin alike
STEPS = (
  10  # control steps in one measurement, fewer than elsewhere: controls of a million environments are large
)


class Part(enum.StrEnum):
  """What is measured."""

  fetch = enum.auto()
  kernels = enum.auto()


@dataclasses.dataclass
class Settings:
  """Settings of a measurement."""

  part: Part = option(Part.fetch, "what is measured")  # noqa: RUF009 (a field)
  device: str = option("auto", "where: cpu (kernels alone), cuda, cuda:<index>, or auto")
  cases: list[str] = option(CHOSEN, "kernels: situations of `cases.PHYSICS`")  # noqa: RUF009 (a field)
  num_envs: list[int] = option(SIZES, "kernels: environments, one measurement for each")  # noqa: RUF009
  unroll: bool = option(False, "kernels: let the compiler unroll loops")
  profiled: bool = option(False, "kernels: one step between cudaProfilerStart and -Stop, and no figures")


def straight_line(kilobytes: int) -> wp.Kernel:
  """Return a CUDA kernel of (passes, numbers [6]): each thread goes that often over so much code."""
  start_warp()
  x: Any = wp.array(dtype=wp.float32)
  # Assembly: the compiler would take a quarter of an hour for a megabyte of C++ in one piece.
  row = "".join(f"fma.rn.f32 %{chain}, %{chain}, %4, %5;" for chain in range(4))
  piece = f'asm volatile("{row * (PIECE // 4)}" : "+f"(p), "+f"(q), "+f"(r), "+f"(s) : "f"(k), "f"(l));\n'
  text = f"""
  #if defined(__CUDA_ARCH__)
  float p = numbers[0], q = numbers[1], r = numbers[2], s = numbers[3], k = numbers[4], l = numbers[5];
  #pragma unroll 1
  for (int pass = 0; pass < passes; ++pass) {{
  {piece * (kilobytes * 1024 // INSTRUCTION // PIECE)}
  }}
  if (p + q + r + s == 1.0f) numbers[0] = 1.0f;  // it never is, but then the code has a purpose
  #endif
  """

  def body(passes: int, numbers: x): ...  # type: ignore  # noqa: ANN202, PGH003 (Warp's own types)

  native = wp.func_native(text)(body)

  def run(passes: int, numbers: x):  # type: ignore  # noqa: ANN202, PGH003
    native(passes, numbers)

  return wp.kernel(run, module="unique", module_options={"enable_backward": False}, grid_stride=False)


def seconds(device: torch.device, code: wp.Kernel, warps: int, passes: int) -> float:
  """Return how long so many warps on every multiprocessor take, the least of several times [s]."""
  numbers = wp.full(6, 0.5, dtype=wp.float32, device=wp.device_from_torch(device))
  threads = warps * CUDA_BLOCK * torch.cuda.get_device_properties(device).multi_processor_count
  found, stream = [], wp.stream_from_torch(device)
  for _ in range(5):
    begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    begin.record()
    wp.launch(code, threads, inputs=[passes, numbers], stream=stream, block_dim=CUDA_BLOCK)
    end.record()
    end.synchronize()
    found.append(begin.elapsed_time(end) / 1000)
  return min(found)


def fetch(device: torch.device) -> None:
  """Print the time of a warp's instruction by the size of the code, and as multiple of that in a cache."""
  cached: dict[int, float] = {}
  for kilobytes in KILOBYTES:
    code = straight_line(kilobytes)
    for warps in WARPS:
      few, many = (seconds(device, code, warps, passes) for passes in (FEW, MANY))
      each = (many - few) / (MANY - FEW) / (kilobytes * 1024 / INSTRUCTION)
      cached.setdefault(warps, each)
      name = f"visit.fetch.kb{kilobytes}.warps{warps}"
      line(f"{name}.nanoseconds", 1e9 * each)
      line(f"{name}.times_cached", each / cached[warps])


def describe(sim: physics.Simulation, name: str) -> None:
  """Print what the step's kernel takes of each thread of a GPU."""
  step = kernel.build_kernel(sim.program, "cuda")
  found = wp.get_cuda_kernel_properties(step, wp.device_from_torch(sim.device), CUDA_BLOCK)
  line(f"{name}.registers", found["register_count"])
  line(f"{name}.stack_bytes", found["local_memory_size"])


def measure(case: cases.PhysicsCase, settings: Settings, device: torch.device) -> None:
  """Print substeps per second of a case by the number of environments."""
  model = models.load(case.robot)
  start = engine.situation(case, physics.Simulation(model, case.num_envs, device))
  start = start._replace(controls=start.controls[:STEPS])
  name = f"visit.{case.name}.{'unrolled' if settings.unroll else 'rolled'}"
  for num_envs in settings.num_envs:
    own = Own(model, num_envs, device)
    run = timed(own, start, controls_of(start, num_envs, device))
    run()
    if settings.profiled:
      torch.cuda.profiler.start()
      own.step()
      torch.cuda.profiler.stop()
      continue
    speed = statistics.median(run() for _ in range(case.repetitions))
    line(f"{name}.envs{num_envs}.substeps_per_second", speed)
    line(f"{name}.envs{num_envs}.substep_microseconds", 1e6 * num_envs / speed)
    line(f"{name}.envs{num_envs}.dropped", own.dropped())
    if device.type == "cuda" and num_envs == settings.num_envs[0]:
      describe(own.sim, name)


def run(words: Sequence[str] = ()) -> None:
  """Measure and report."""
  settings = assign(Settings(), pairs([*words], leaves(Settings())))
  device = World().device(settings.device)
  unknown = [name for name in settings.cases if name not in CASES]
  if unknown:
    raise ConfigError(f"cases: there is no '{unknown[0]}'; there are {', '.join(CASES)}")
  if device.type != "cuda" and (settings.part is Part.fetch or settings.profiled):
    raise ConfigError(f"part=fetch and profiled=true need a CUDA device, not {device.type}")
  if settings.part is Part.fetch:
    fetch(device)
    return
  with unrolled(settings.unroll):
    for name in settings.cases:
      measure(CASES[name], settings, device)


if __name__ == "__main__":
  try:
    run(sys.argv[1:])
  except ConfigError as error:
    sys.exit(f"error: {error}")
