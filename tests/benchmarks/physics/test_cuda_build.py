"""Bytes of an instruction are read off its name."""

import subprocess
from pathlib import Path

import pytest

from benchmarks.physics import cuda_build, models
from physics.trace.kernel import CudaBuild


@pytest.mark.parametrize(
  ("instruction", "space", "size"),
  [
    ("        LDL R12, [R1+0x10] ;", "L", 4),
    ("        STL.64 [R1+0x8], R4 ;", "L", 8),
    ("   @!P0 STL.128 [R1], R4 ;", "L", 16),
    ("        LDG.E R2, desc[UR4][R2.64] ;", "G", 4),
    ("        LDG.E.64.CONSTANT R2, desc[UR4][R2.64] ;", "G", 8),
    ("        STG.E.U8 desc[UR4][R2.64], R5 ;", "G", 1),
    ("        LDG.E.S16 R2, desc[UR4][R2.64] ;", "G", 2),
    ("        ST.E.64 desc[UR4][R2.64], R6 ;", "", 8),
  ],
)
def test_accesses_and_their_widths(instruction: str, space: str, size: int) -> None:
  ((found, modifiers),) = cuda_build.ACCESS.findall(instruction)
  assert (found, cuda_build.width(modifiers)) == (space, size)


def test_warps_in_step_wait_for_each_other_in_machine_code(tmp_path: Path) -> None:
  model = models.load("hopper")
  with cuda_build.built(CudaBuild(block=128, in_step=True)):
    cubin = cuda_build.compile_cubin(model, tmp_path)
  code = subprocess.run(
    [cuda_build.tool("nvdisasm"), "-c", cubin], check=True, capture_output=True, text=True
  ).stdout
  assert code.count("BAR.SYNC") + code.count("BAR.RED") > 2
