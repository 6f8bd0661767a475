"""Resources of the robots' GPU kernels: registers, stack, instructions and memory traffic.

The kernels are compiled for sm_90; no GPU is needed.
"""

import contextlib
import re
import subprocess
import tempfile
import time
from collections.abc import Iterator
from importlib import metadata
from pathlib import Path

import warp as wp

import physics
from benchmarks import cases
from benchmarks.physics import models
from benchmarks.report import line
from physics.state.layout import Layout
from physics.step import trace_step
from physics.trace import kernel
from physics.trace.kernel import CudaBuild, build_kernel
from physics.trace.trace import Program

ARCHITECTURE = 90  # H100, H200
WORD = 4  # bytes of a number, and of a load or store without a size modifier
ACCESS = re.compile(r"\s(?:LD|ST)(L|G|)((?:\.\w+)*)\s")  # load or store: local, global or generic; modifiers


def trace(model: physics.Model) -> Program:
  """Return the traced step of a model with the default outputs."""
  return trace_step(model, Layout(model, physics.DEFAULT_OUTPUTS))


@contextlib.contextmanager
def built(how: CudaBuild) -> Iterator[None]:
  """Set how kernels are built for CUDA inside the block."""
  before, kernel.CUDA = kernel.CUDA, how
  try:
    yield
  finally:
    kernel.CUDA = before


def compile_cubin(model: physics.Model, folder: str | Path) -> Path:
  """Compile the step of a model for a GPU into an empty folder; return the path of the CUBIN file."""
  module = build_kernel(trace(model), "cuda").module
  wp.compile_aot_module(module, arch=ARCHITECTURE, module_dir=str(folder), use_ptx=False, strip_hash=True)
  (cubin,) = Path(folder).glob("*.cubin")
  return cubin


def tool(name: str) -> str:
  """Return the path of a CUDA tool from a wheel of the `bench` extra."""
  files = metadata.files(f"nvidia-cuda-{name}") or ()
  return str(next(file.locate() for file in files if file.name == name))


def resources(cubin: Path) -> dict[str, int]:
  """Return registers and stack bytes per thread, the number of instructions, and the bytes that they move.

  Each instruction counts once, however often its loop runs. The bytes are from a launch of one substep in
  which every loop runs once and every guarded block is entered.
  """
  usage = subprocess.run([tool("cuobjdump"), "-res-usage", cubin], check=True, capture_output=True, text=True)
  code = subprocess.run([tool("nvdisasm"), "-c", cubin], check=True, capture_output=True, text=True).stdout
  found = dict(re.findall(r"(REG|STACK):(\d+)", usage.stdout + usage.stderr))
  moved = {"L": 0, "G": 0}
  for space, modifiers in ACCESS.findall(code):
    moved[space or "G"] += width(modifiers)  # a generic access does not go to the stack
  return {
    "registers": int(found["REG"]),
    "stack_bytes": int(found["STACK"]),
    "instructions": len(re.findall(r"^\s*/\*[0-9a-f]{4,6}\*/\s", code, re.MULTILINE)),
    "local_bytes": moved["L"],
    "global_bytes": moved["G"],
  }


def width(modifiers: str) -> int:
  """Return the number of bytes per thread of a load or store with these modifiers."""
  bits = re.search(r"\.[US]?(8|16|64|128)\b", modifiers)
  return int(bits[1]) // 8 if bits else WORD


def run() -> None:
  """Print the resources of every robot's kernel, with and without unrolled loops, and its array size."""
  for robot in cases.ROBOTS:
    model = models.load(robot)
    for wanted, prefix in ((False, ""), (True, "unrolled_")):
      with tempfile.TemporaryDirectory() as folder, built(CudaBuild(unroll=wanted)):
        begin = time.perf_counter()
        cubin = compile_cubin(model, folder)
        line(f"cuda.{robot}.{prefix}build_seconds", time.perf_counter() - begin)
        for name, value in resources(cubin).items():
          line(f"cuda.{robot}.{prefix}{name}", value)
    line(f"cuda.{robot}.array_bytes", WORD * sum(map(len, trace(model).arrays)))
