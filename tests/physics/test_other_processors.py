"""The kernel of a model on processors with shorter vectors: 8 lanes of AVX2, and 4 of SSE, as NEON has.

Warp's compiler cannot build for ARM on x86, so SSE stands in for NEON, whose vectors are as long.
"""

import platform

import pytest
import torch

from physics.parity import random_states
from physics.parity.compare import SINGLE, Trial, outputs
from physics.parity.reference import converged
from physics.simulation import Simulation
from physics.trace import kernel
from tests.lacking import lacking
from tests.physics.conftest import NUM_STATES, load
from tests.physics.reports import assert_holds

pytestmark = pytest.mark.skipif(platform.machine() not in {"x86_64", "AMD64"}, reason="builds for x86")


@pytest.mark.parametrize(("processor", "lanes"), [("haswell", 8), ("x86-64-v2", 4)])
def test_a_kernel_for_shorter_vectors_agrees_with_mujoco(processor, lanes, monkeypatch):
  if processor == "haswell" and not torch.backends.cpu.get_cpu_capability().startswith("AVX"):
    lacking("needs a processor with AVX2")
  native = "-march=native"
  assert native in kernel.CPU_FLAGS
  monkeypatch.setattr(kernel, "CPU_FLAGS", kernel.CPU_FLAGS.replace(native, f"-target-cpu {processor}"))
  monkeypatch.setattr(kernel, "CPU_LANES", lanes)
  model = converged(load("gymnasium/hopper"))
  trial = Trial(model, random_states(model, NUM_STATES))
  sim = Simulation(model, NUM_STATES, threads=1, outputs=outputs(model))
  assert_holds(trial.contacts(SINGLE) + trial.stages(sim, SINGLE))
