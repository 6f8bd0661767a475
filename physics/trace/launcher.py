"""Launcher of kernels over all environments, in slices for CPU threads."""

from collections.abc import Iterator, Sequence
from functools import lru_cache
from itertools import count, pairwise
from typing import Any
from weakref import WeakValueDictionary

import numpy as np
import torch
import warp as wp

from physics.trace.kernel import block_on, build_kernel, load_kernel
from physics.trace.threads import SPARE, fits_caller, stack_bytes, start_threads
from physics.trace.trace import Program

GIGA = 1e9
SLICES_PER_THREAD = 4  # more slices than threads, so environments with many contacts delay no others
Parameters = tuple[int, int, int]  # substeps, stride, integrate: see `step.trace_step`
Launches = list[list[wp.Launch]]  # for each slice, the launches of every program
_recordings: WeakValueDictionary[int, "Recording"] = WeakValueDictionary()  # by number
_numbers = count()
_stacks: dict[torch.device, int] = {}  # what CUDA has reserved for each thread's stack so far [bytes]


def indexed(device: str | torch.device) -> torch.device:
  """Return a device with its index, which Warp asks for: "cuda" is torch's current GPU."""
  return torch.device("cuda", torch.cuda.current_device()) if str(device) == "cuda" else torch.device(device)


@lru_cache(maxsize=8)
def warp_stream(stream: torch.cuda.Stream) -> wp.Stream:
  """Return Warp's object for one of torch's streams; making one takes a CUDA event."""
  return wp.stream_from_torch(stream)


def reserve_stacks(kernels: Sequence[wp.Kernel], device: torch.device) -> None:
  """Raise MemoryError where CUDA has no room for the stacks of these kernels' threads.

  Their first launch would fail with an error that does not mention stacks: CUDA reserves the deepest stack so
  far for as many threads as the whole GPU can hold, even if few are launched.
  """
  gpu = wp.device_from_torch(device)
  stack = max(
    wp.get_cuda_kernel_properties(kernel, gpu, block_on("cuda"))["local_memory_size"] for kernel in kernels
  )
  chip = torch.cuda.get_device_properties(device)
  threads = chip.multi_processor_count * chip.max_threads_per_multi_processor
  missing = (stack - _stacks.get(device, 0)) * threads
  if missing > torch.cuda.mem_get_info(device)[0]:
    torch.cuda.empty_cache()  # memory of freed tensors that torch keeps
  free = torch.cuda.mem_get_info(device)[0]
  if missing > free:
    raise MemoryError(
      f"{device} has {free / GIGA:.1f} GB free, and the kernel's stack asks for {missing / GIGA:.1f} GB: "
      f"{stack:,} bytes for each of {threads:,} threads, whatever the number of environments"
    )
  _stacks[device] = max(stack, _stacks.get(device, 0))


class Launcher:
  """The launcher of one or more kernels, which run in order on each of `groups` parts of the work.

  The parts of traced programs are lane groups. On a CPU the caller is one of the `threads`, unless it lacks
  the `stack` [bytes] that the kernels need.
  """

  def __init__(
    self, kernels: Sequence[wp.Kernel], device: torch.device, groups: int, threads: int, stack: int = SPARE
  ) -> None:
    self.kernels, self.device, self.groups, self.threads = kernels, device, groups, threads
    self._caller_runs = device.type == "cuda" or fits_caller(stack)
    self._others = threads - 1 if self._caller_runs else threads
    self._pool = start_threads(self._others, stack) if self._others else None

  @staticmethod
  def of(programs: Sequence[Program], device: torch.device, groups: int, threads: int) -> "Launcher":
    """Return the launcher of traced programs, on a number of lane groups."""
    kernels = [build_kernel(program, device.type) for program in programs]
    return Launcher(kernels, device, groups, threads, stack_bytes(programs))

  def record(
    self, inputs: Sequence[Any], widths: Sequence[int] = (), memory: Sequence[torch.Tensor] = ()
  ) -> "Recording":
    """Record the launches of each slice of the work on these inputs.

    `widths` are the threads that each kernel has for a part of the work, by default one. `memory` is used by
    the kernels besides the tensors among the inputs.
    """
    block = block_on(self.device.type)
    for kernel in self.kernels:
      load_kernel(kernel, wp.device_from_torch(self.device), block)
    if self.device.type == "cuda":
      reserve_stacks(self.kernels, self.device)
    tensors = [value for value in inputs if isinstance(value, torch.Tensor)]
    inputs = [wp.from_torch(value) if isinstance(value, torch.Tensor) else value for value in inputs]
    widths = widths or [1] * len(self.kernels)
    slices = min(self.groups, self.threads * SLICES_PER_THREAD) if self.threads > 1 else 1
    bounds = np.linspace(0, self.groups, slices + 1).astype(int)
    launches = [
      [
        wp.launch(
          kernel,
          (end - first) * width,
          inputs=[first * width, *inputs],
          device=wp.device_from_torch(self.device),
          block_dim=block,
          record_cmd=True,
        )
        for kernel, width in zip(self.kernels, widths, strict=True)
      ]
      for first, end in pairwise(bounds.tolist())
    ]
    return Recording(self, launches, [*tensors, *memory])

  def run(self, launches: Launches) -> None:
    """Run the slices; each thread takes the next slice when it has finished one."""
    # On a GPU the launch queues in torch's stream, after the operations that wrote the views.
    stream = warp_stream(torch.cuda.current_stream(self.device)) if self.device.type == "cuda" else None
    slices = iter(launches)
    others = [self._pool.submit(_drain, slices, stream) for _ in range(self._others)] if self._pool else []
    if self._caller_runs:
      _drain(slices, stream)
    for other in others:
      other.result()


class Recording:
  """Recorded launches of a launcher, to be run any number of times on the same memory."""

  def __init__(self, launcher: Launcher, launches: Launches, memory: Sequence[torch.Tensor]) -> None:
    """Keep the launches, and the `memory` that their kernels read and write."""
    self.launcher, self.launches, self.memory = launcher, launches, list(memory)
    self._number = next(_numbers)
    _recordings[self._number] = self

  @torch.compiler.disable  # it compiles the code around the launch
  def run(self) -> None:
    """Run the launches as an operation of torch, so that recordings of its operations include them."""
    torch.ops.physics.launch(self.memory, self._number)


def _drain(slices: Iterator[list[wp.Launch]], stream: wp.Stream | None) -> None:
  for launches in slices:
    for launch in launches:
      launch.launch(stream)


def _launch(_memory: Sequence[torch.Tensor], number: int) -> None:
  recording = _recordings[number]
  recording.launcher.run(recording.launches)


torch.library.define("physics::launch", "(Tensor(a!)[] memory, int recording) -> ()")
torch.library.impl("physics::launch", "CompositeExplicitAutograd", _launch)
