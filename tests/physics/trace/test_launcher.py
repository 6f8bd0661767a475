"""Launches on a pretended GPU: which device, in which memory, with room for the stacks or not."""

from types import SimpleNamespace

import pytest
import torch
import warp as wp

from physics import Simulation
from physics.trace import launcher
from physics.trace.kernel import CUDA, start_warp
from physics.trace.launcher import indexed, reserve_stacks
from tests.physics.conftest import load

GPUS = ("gpu 0", "gpu 1")
STACK, MULTIPROCESSORS, RESIDENT = 5000, 100, 2048
NEEDED = STACK * MULTIPROCESSORS * RESIDENT  # [bytes]


@pytest.fixture
def gpus(monkeypatch):
  """Two GPUs, the second of them torch's current one; what is launched on them; their free memory."""
  start_warp()
  gpus = SimpleNamespace(launches=[], streams=[], free=NEEDED, kept=0, stack=STACK)

  def empty_cache():
    gpus.free, gpus.kept = gpus.free + gpus.kept, 0

  def properties(_kernel, device, block_dim):
    assert (device, block_dim) == (GPUS[1], CUDA.block)
    return {"local_memory_size": gpus.stack}

  def launch(kernel, count, *, inputs, device, block_dim, record_cmd):
    gpus.launches.append(SimpleNamespace(kernel=kernel, count=count, device=device))
    return SimpleNamespace(launch=gpus.launches.append)

  chip = SimpleNamespace(multi_processor_count=MULTIPROCESSORS, max_threads_per_multi_processor=RESIDENT)
  monkeypatch.setattr(torch.cuda, "current_device", lambda: 1)
  monkeypatch.setattr(torch.cuda, "get_device_properties", lambda _device: chip)
  monkeypatch.setattr(torch.cuda, "mem_get_info", lambda _device: (gpus.free, 2 * NEEDED))
  monkeypatch.setattr(torch.cuda, "empty_cache", empty_cache)
  monkeypatch.setattr(wp._src.context.runtime, "cuda_devices", GPUS)
  monkeypatch.setattr(wp, "get_cuda_kernel_properties", properties)
  monkeypatch.setattr(wp, "launch", launch)
  monkeypatch.setattr(launcher, "load_kernel", lambda *_: None)
  monkeypatch.setattr(torch.cuda, "current_stream", lambda device: f"stream of {device}")
  monkeypatch.setattr(
    wp, "stream_from_torch", lambda stream: gpus.streams.append(stream) or f"Warp's {stream}"
  )
  launcher.warp_stream.cache_clear()
  monkeypatch.setattr(launcher, "_stacks", {})
  return gpus


def test_a_device_keeps_its_index_and_a_gpu_without_one_is_the_current_one(gpus):
  assert indexed("cuda") == torch.device("cuda:1")
  assert indexed(torch.device("cuda", 0)) == torch.device("cuda:0")
  assert indexed("cpu") == torch.device("cpu")


@pytest.mark.parametrize("device", ["cuda", torch.device("cuda")])
def test_a_simulation_on_cuda_launches_on_the_current_gpu(gpus, monkeypatch, device):
  """Its memory lies on the CPU here."""
  for name in ("zeros", "tensor"):
    make = getattr(torch, name)
    monkeypatch.setattr(torch, name, lambda *a, make=make, **k: make(*a, **k | {"device": "cpu"}))
  simulation = Simulation(load("springs"), 3, device)
  assert simulation.device == torch.device("cuda:1")
  simulation.step()
  simulation.step()
  recorded, stream, again = gpus.launches
  assert recorded.device == GPUS[1]
  assert recorded.count == CUDA.block  # a whole warp, and rows of 128 bytes
  assert simulation._memory.stride(0) == CUDA.block
  assert stream == again == "Warp's stream of cuda:1"
  assert len(gpus.streams) == 1


def test_stacks_that_fit_are_reserved_once(gpus):
  device = torch.device("cuda:1")
  reserve_stacks(["kernel"], device)
  gpus.free = 0
  reserve_stacks(["kernel"], device)
  gpus.stack, gpus.free = STACK + 8, 8 * MULTIPROCESSORS * RESIDENT
  reserve_stacks(["deeper by 8 bytes"], device)


def test_stacks_that_do_not_fit_are_named_before_the_launch_fails(gpus):
  gpus.free = NEEDED - 1
  message = (
    r"^cuda:1 has 1\.0 GB free, and the kernel's stack asks for 1\.0 GB: "
    r"5,000 bytes for each of 204,800 threads, whatever the number of environments$"
  )
  with pytest.raises(MemoryError, match=message):
    reserve_stacks(["kernel"], torch.device("cuda:1"))


def test_memory_that_torch_keeps_makes_room_for_stacks(gpus):
  gpus.free, gpus.kept = NEEDED // 2, NEEDED // 2
  reserve_stacks(["kernel"], torch.device("cuda:1"))
  assert gpus.kept == 0
