"""The visit to a GPU: code of the size that it says, and physics that runs anywhere."""

from pathlib import Path

import pytest
import warp as wp

from benchmarks import cuda, report, visit
from physics.trace import kernel


@pytest.mark.parametrize("kilobytes", [8, 64])
def test_straight_code_is_as_long_as_it_says(kilobytes: int, tmp_path: Path) -> None:
  module = visit.straight_line(kilobytes).module
  wp.compile_aot_module(
    module, arch=cuda.ARCHITECTURE, module_dir=str(tmp_path), use_ptx=False, strip_hash=True
  )
  (cubin,) = tmp_path.glob("*.cubin")
  (text,) = sections(cubin.read_bytes())
  assert 0 <= text - 1024 * kilobytes < 2048  # besides it: the loop, what is read and written


def sections(elf: bytes) -> list[int]:
  """Return the sizes of an ELF file's sections of machine code."""
  word = lambda at, size: int.from_bytes(elf[at : at + size], "little")  # noqa: E731
  table, size, count = word(0x28, 8), word(0x3A, 2), word(0x3C, 2)
  headers = [table + number * size for number in range(count)]
  executable = 4
  return [word(header + 0x20, 8) for header in headers if word(header + 8, 8) & executable]


def test_physics_alone_is_measured_by_the_number_of_environments(capsys) -> None:
  visit.run(["part=kernels", "device=cpu", "cases=[hopper]", "num_envs=[64,96]", "unroll=true"])
  figures = report.read(capsys.readouterr().out)
  for num_envs in (64, 96):
    speed = figures[f"visit.hopper.block32.unrolled.envs{num_envs}.substeps_per_second"]
    microseconds = figures[f"visit.hopper.block32.unrolled.envs{num_envs}.substep_microseconds"]
    assert speed * microseconds == pytest.approx(1e6 * num_envs, rel=1e-3)
    assert figures[f"visit.hopper.block32.unrolled.envs{num_envs}.dropped"] == 0
  assert kernel.CudaBuild() == kernel.CUDA  # it was for this measurement alone
