"""The step of a model compiled for a GPU; the machine needs none."""

from pathlib import Path

import warp as wp

import physics
from physics.state.layout import Layout
from physics.step import trace_step
from physics.trace.kernel import build_kernel

ARCHITECTURE = 90  # H100, H200


def compile_step(model: physics.Model, folder: Path) -> Path:
  """Compile the step with the default outputs into an empty folder; return the path of the CUBIN file."""
  module = build_kernel(trace_step(model, Layout(model, physics.DEFAULT_OUTPUTS)), "cuda").module
  wp.compile_aot_module(module, arch=ARCHITECTURE, module_dir=str(folder), use_ptx=False, strip_hash=True)
  (cubin,) = folder.glob("*.cubin")
  return cubin
