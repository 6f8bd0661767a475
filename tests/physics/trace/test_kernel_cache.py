"""The cache of compiled kernels: what is damaged in it is built again."""

import logging
import shutil
from pathlib import Path

import pytest
import warp as wp

from physics.trace.kernel import CHECKSUMS, _binaries, kernel_cache, load_kernel

pytestmark = pytest.mark.xdist_group("kernel cache")  # the tests damage the same files
DAMAGES = {
  "garbage": lambda whole: bytes(255 - byte for byte in whole),
  "a bit turned": lambda whole: whole[:-9] + bytes([whole[-9] ^ 1]) + whole[-8:],
  "gone": None,
}


@pytest.fixture
def kernel() -> wp.Kernel:
  """A small kernel that is not loaded yet, and has no folder in the cache."""
  kernel_cache()

  def double(numbers: wp.array(dtype=wp.float32)):  # type: ignore[valid-type]
    numbers[wp.tid()] = 2.0 * numbers[wp.tid()]

  kernel = wp.kernel(double, module="unique", module_options={"enable_backward": False})
  shutil.rmtree(folder_of(kernel), ignore_errors=True)
  return kernel


def folder_of(kernel: wp.Kernel) -> Path:
  return kernel_cache() / kernel.module.get_module_identifier(1)


def doubled(kernel: wp.Kernel) -> list[float]:
  """Load the kernel as a new process would, and run it."""
  kernel.module.unload()
  load_kernel(kernel, wp.get_device("cpu"), 1)
  numbers = wp.array([1.0, 2.0], dtype=wp.float32, device="cpu")
  wp.launch(kernel, 2, inputs=[numbers], device="cpu", block_dim=1)
  return numbers.numpy().tolist()


@pytest.mark.parametrize("checksums", [True, False], ids=["", "older than checksums"])
def test_what_is_damaged_is_built_again(kernel, checksums):
  assert doubled(kernel) == [2.0, 4.0]
  folder = folder_of(kernel)
  whole = {file: file.read_bytes() for file in _binaries(folder)}
  assert {file.suffix for file in whole} == {".meta", ".o"}
  for file, content in whole.items():
    for name, damage in DAMAGES.items():
      if not checksums:
        (folder / CHECKSUMS).unlink(missing_ok=True)
        if name == "a bit turned":  # only a checksum tells
          continue
      file.write_bytes(damage(content)) if damage else file.unlink()
      assert doubled(kernel) == [2.0, 4.0], (file.name, name)
      assert {other: other.read_bytes() for other in _binaries(folder)} == whole, (file.name, name)


@pytest.mark.parametrize("content", [b"", b"[]", b"{", b"\xff\x00", b'{"x": 1}'])
def test_damaged_checksums_are_written_again(kernel, content):
  doubled(kernel)
  sums = folder_of(kernel) / CHECKSUMS
  before = sums.read_bytes()
  sums.write_bytes(content)
  assert doubled(kernel) == [2.0, 4.0]
  assert sums.read_bytes() == before


def test_a_build_is_told_and_a_cached_kernel_is_not(kernel, caplog):
  with caplog.at_level(logging.INFO):
    doubled(kernel)
    doubled(kernel)
  assert caplog.messages == ["building a kernel for cpu: seconds to minutes; later runs reuse it"]
