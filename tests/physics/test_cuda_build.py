"""The CUDA kernel of a model compiles for sm_90 on a machine with or without a GPU."""

import subprocess
from importlib import metadata
from pathlib import Path

import pytest

import physics
import tasks
from benchmarks.physics import models
from physics.trace import kernel
from tests.physics.cubin import compile_step

EM_CUDA = 190  # ELF's number for NVIDIA's machine code


def load(name: str) -> physics.Model:
  """Return the model of a task, or the chain, whose step is loops over its hundred bodies."""
  return models.load(name) if name == "chain" else physics.load_model(tasks.load(name).Task.robot)


@pytest.mark.parametrize("name", ["ant", "cartpole", "chain"])
def test_the_step_compiles_for_a_gpu(name: str, tmp_path: Path) -> None:
  code = compile_step(load(name), tmp_path).read_bytes()
  assert code[:4] == b"\x7fELF"
  assert int.from_bytes(code[18:20], "little") == EM_CUDA
  assert b"sm_90" in code


def test_warps_in_step_wait_for_each_other_in_machine_code(tmp_path: Path, monkeypatch) -> None:
  monkeypatch.setattr(kernel, "CUDA", kernel.CudaBuild(block=128, in_step=True))
  cubin = compile_step(models.load("hopper"), tmp_path)
  files = metadata.files("nvidia-cuda-nvdisasm") or ()
  tool = next(str(file.locate()) for file in files if file.name == "nvdisasm")
  code = subprocess.run([tool, "-c", cubin], check=True, capture_output=True, text=True).stdout
  assert code.count("BAR.SYNC") + code.count("BAR.RED") > 2
