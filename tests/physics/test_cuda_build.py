"""The CUDA kernel of a model compiles for sm_90 on a machine with or without a GPU."""

from pathlib import Path

import pytest

import physics
import tasks
from benchmarks.physics import models
from benchmarks.physics.cuda_build import compile_cubin

EM_CUDA = 190  # ELF's number for NVIDIA's machine code


def load(name: str) -> physics.Model:
  """Return the model of a task, or the chain, whose step is loops over its hundred bodies."""
  return models.load(name) if name == "chain" else physics.load_model(tasks.load(name).Task.robot)


@pytest.mark.parametrize("name", ["ant", "cartpole", "chain"])
def test_the_step_compiles_for_a_gpu(name: str, tmp_path: Path) -> None:
  code = compile_cubin(load(name), tmp_path).read_bytes()
  assert code[:4] == b"\x7fELF"
  assert int.from_bytes(code[18:20], "little") == EM_CUDA
  assert b"sm_90" in code
