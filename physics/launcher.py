"""A traced program, compiled and launched over all environments, in slices for CPU threads."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise

import numpy as np
import torch
import warp as wp

from physics.kernel import CUDA_BLOCK, build_kernel
from physics.trace import Program

SLICES_PER_THREAD = 4  # more slices than threads: environments with many contacts do not hold the others up
Parameters = tuple[int, int, int]  # substeps, stride, integrate: see `step.trace_step`


class Launcher:
  """The kernel of a program, on `groups` lane groups of a device."""

  def __init__(
    self, program: Program, device: torch.device, groups: int, pool: ThreadPoolExecutor | None, threads: int
  ) -> None:
    self.device, self.groups, self.pool, self.threads = device, groups, pool, threads
    self.kernel = build_kernel(program, device.type)

  def record(self, parameters: Parameters, arrays: list[torch.Tensor]) -> list[wp.Launch]:
    """Record one launch per slice of lane groups, on the arrays state, control and parameters."""
    memory = [wp.from_torch(array) for array in arrays]
    slices = min(self.groups, self.threads * SLICES_PER_THREAD) if self.threads > 1 else 1
    bounds = np.linspace(0, self.groups, slices + 1).astype(int)
    return [
      wp.launch(
        self.kernel,
        end - first,
        inputs=[first, *parameters, *memory],
        device=wp.device_from_torch(self.device),
        block_dim=CUDA_BLOCK if self.device.type == "cuda" else 1,
        record_cmd=True,
      )
      for first, end in pairwise(bounds.tolist())
    ]

  @torch.compiler.disable  # it compiles what is before and after
  def run(self, launches: list[wp.Launch]) -> None:
    """Run the slices, each thread taking the next one when it has done its last."""
    # On a GPU the launch takes its place in torch's stream, behind what wrote the views.
    stream = wp.stream_from_torch(self.device) if self.device.type == "cuda" else None
    slices = iter(launches)
    others = [self.pool.submit(_drain, slices, stream) for _ in range(self.threads - 1)] if self.pool else []
    _drain(slices, stream)
    for other in others:
      other.result()


def _drain(slices: Iterator[wp.Launch], stream: wp.Stream | None) -> None:
  for launch in slices:
    launch.launch(stream)
