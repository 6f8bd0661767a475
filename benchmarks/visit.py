"""GPU speed on large kernels: python -m benchmarks.visit part=fetch, or part=kernels.

`fetch` runs straight-line code of 32 to 1,024 KB repeatedly with a few warps on every multiprocessor, and
measures the time per instruction when the code no longer fits into a cache. `kernels` runs the physics only,
from 4,096 environments to a million, with or without unrolled loops (`unroll=true`). Both print `name: value`
lines.
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
from benchmarks.cuda import built
from benchmarks.on_device import Own, controls_of, timed
from benchmarks.report import line
from gpurobot.device.distributed import World
from gpurobot.settings.config import ConfigError, assign, leaves, option, pairs
from physics.trace import kernel
from physics.trace.kernel import CudaBuild, block_on, start_warp

CASES = {case.name: case for case in cases.PHYSICS}
CHOSEN = ["ant", "humanoid_heap", "quadruped_on_rough_ground", "hand_holding_cube"]
SIZES = [4096, 16384, 65536, 1048576]
WARP = 32  # threads
CACHED = 8  # size of code that fits into the nearest cache [KB], the reference for other sizes
KILOBYTES = (CACHED, 32, 64, 128, 256, 512, 1024)
WARPS = (1, 4, 8)  # warps per multiprocessor
INSTRUCTION = 16  # size of an instruction [bytes]
PIECE = 256  # instructions per statement, in four independent chains
FEW, MANY = 4, 36  # passes over the code; the difference of their times excludes the launch
STEPS = 10  # control steps per measurement; few, because controls of a million environments are large


class Part(enum.StrEnum):
  """Kind of measurement."""

  fetch = enum.auto()
  kernels = enum.auto()


@dataclasses.dataclass
class Settings:
  """Settings of a measurement."""

  part: Part = option(Part.fetch, "kind of measurement")  # noqa: RUF009 (a field)
  device: str = option("auto", "device: cpu (kernels only), cuda, cuda:<index>, or auto")
  cases: list[str] = option(CHOSEN, "kernels: names of cases in `cases.PHYSICS`")  # noqa: RUF009 (a field)
  num_envs: list[int] = option(SIZES, "kernels: numbers of environments to measure")  # noqa: RUF009
  block: int = option(CudaBuild.block, "kernels: threads in a block", low=WARP, high=256)
  unroll: bool = option(False, "kernels: whether the compiler unrolls loops")
  in_step: bool = option(False, "kernels: whether the warps of a block wait for each other after each stage")
  profiled: bool = option(
    False, "kernels: profile one step between cudaProfilerStart and -Stop, print nothing"
  )


def straight_line(kilobytes: int) -> wp.Kernel:
  """Return a CUDA kernel (passes, numbers [6]); its threads run code of this size `passes` times."""
  start_warp()
  x: Any = wp.array(dtype=wp.float32)
  # Assembly, because the compiler would take a quarter of an hour for a megabyte of C++.
  row = "".join(f"fma.rn.f32 %{chain}, %{chain}, %4, %5;" for chain in range(4))
  piece = f'asm volatile("{row * (PIECE // 4)}" : "+f"(p), "+f"(q), "+f"(r), "+f"(s) : "f"(k), "f"(l));\n'
  text = f"""
  #if defined(__CUDA_ARCH__)
  float p = numbers[0], q = numbers[1], r = numbers[2], s = numbers[3], k = numbers[4], l = numbers[5];
  #pragma unroll 1
  for (int pass = 0; pass < passes; ++pass) {{
  {piece * (kilobytes * 1024 // INSTRUCTION // PIECE)}
  }}
  if (p + q + r + s == 1.0f) numbers[0] = 1.0f;  // never true, but keeps the code from being removed
  #endif
  """

  def body(passes: int, numbers: x): ...  # type: ignore  # noqa: ANN202, PGH003 (Warp's own types)

  native = wp.func_native(text)(body)

  def run(passes: int, numbers: x):  # type: ignore  # noqa: ANN202, PGH003
    native(passes, numbers)

  return wp.kernel(run, module="unique", module_options={"enable_backward": False}, grid_stride=False)


def seconds(device: torch.device, code: wp.Kernel, warps: int, passes: int) -> float:
  """Return the shortest of several times of a launch with `warps` warps on every multiprocessor [s]."""
  numbers = wp.full(6, 0.5, dtype=wp.float32, device=wp.device_from_torch(device))
  threads = warps * WARP * torch.cuda.get_device_properties(device).multi_processor_count
  found, stream = [], wp.stream_from_torch(device)
  for _ in range(5):
    begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    begin.record()
    wp.launch(code, threads, inputs=[passes, numbers], stream=stream, block_dim=WARP)
    end.record()
    end.synchronize()
    found.append(begin.elapsed_time(end) / 1000)
  return min(found)


def fetch(device: torch.device) -> None:
  """Print the time per instruction of a warp for each code size, and relative to cached code."""
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
  """Print the registers and the stack of the step kernel per thread."""
  step = kernel.build_kernel(sim.program, "cuda")
  found = wp.get_cuda_kernel_properties(step, wp.device_from_torch(sim.device), block_on("cuda"))
  line(f"{name}.registers", found["register_count"])
  line(f"{name}.stack_bytes", found["local_memory_size"])


def measure(case: cases.PhysicsCase, settings: Settings, device: torch.device) -> None:
  """Print the speed of a case [substeps/s] for each number of environments."""
  model = models.load(case.robot)
  start = engine.situation(case, physics.Simulation(model, case.num_envs, device))
  start = start._replace(controls=start.controls[:STEPS])
  form = [f"block{settings.block}", "unrolled" if settings.unroll else "rolled"]
  name = ".".join(("visit", case.name, *form, *(["in_step"] if settings.in_step else [])))
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
  if settings.block % WARP:
    raise ConfigError(f"block={settings.block}: a block has whole warps; write a multiple of {WARP}")
  if device.type != "cuda" and (settings.part is Part.fetch or settings.profiled):
    raise ConfigError(f"part=fetch and profiled=true need a CUDA device, not {device.type}")
  if settings.part is Part.fetch:
    fetch(device)
    return
  with built(CudaBuild(settings.block, settings.unroll, settings.in_step)):
    for name in settings.cases:
      measure(CASES[name], settings, device)


if __name__ == "__main__":
  try:
    run(sys.argv[1:])
  except ConfigError as error:
    sys.exit(f"error: {error}")
