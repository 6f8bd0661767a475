"""The CUDA kernel of a model compiles for sm_90 on a machine with or without a GPU."""

from pathlib import Path

import pytest

from benchmarks.physics import models
from benchmarks.physics.cuda_build import compile_cubin
from tests.physics.conftest import load

EM_CUDA = 190  # ELF's number for NVIDIA's machine code


@pytest.mark.parametrize("name", ["gymnasium/hopper", "chain"])
def test_the_step_compiles_for_a_gpu(name: str, tmp_path: Path) -> None:
  """The step of the chain is loops over its hundred bodies."""
  model = models.load(name) if name == "chain" else load(name)
  code = compile_cubin(model, tmp_path).read_bytes()
  assert code[:4] == b"\x7fELF"
  assert int.from_bytes(code[18:20], "little") == EM_CUDA
  assert b"sm_90" in code
