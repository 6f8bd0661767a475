"""The traced program run by NumPy, with the interface of `Simulation`."""

from collections.abc import Iterator
from contextlib import contextmanager

import mujoco
import numpy as np
import torch

from physics.engines.mujoco_engine import STATE
from physics.model.model import Model
from physics.solver import newton
from physics.state.delay import waits_at_start
from physics.state.layout import Layout, OutputSpec
from physics.step import trace_step
from physics.trace.emit_numpy import numpy_function

DERIVED = ("qacc", "xpos", "xquat", "cfrc_ext")


class NumpySimulation:
  """The traced program run by NumPy: float64 tests its mathematics, float32 its rounding.

  Fields are tensors [num_envs, ...] on the CPU of the type `dtype`, counters included. `run`
  is the program as a Python function, which a debugger steps through.
  """

  qpos: torch.Tensor  # [num_envs, nq]
  ctrl: torch.Tensor  # [num_envs, nu]
  overflow: torch.Tensor  # [num_envs]

  def __init__(
    self, model: Model, num_envs: int, outputs: OutputSpec = DERIVED, dtype: type[np.floating] = np.float64
  ) -> None:
    self.model, self.num_envs = model, num_envs
    self.layout = Layout(model, outputs)
    with _converging(dtype):
      self.run = numpy_function(trace_step(model, self.layout))
    self._memory = np.zeros((self.layout.rows, num_envs), dtype)
    self._controls = np.zeros((max(1, model.nu), num_envs), dtype)
    self.ctrl = torch.from_numpy(self._controls[: model.nu].T)
    for name, block in self.layout.blocks.items():
      rows = torch.from_numpy(self._memory[block.start : block.start + block.rows].T)
      setattr(self, name, rows.unflatten(1, block.shape) if block.shape else rows[:, 0])
    self.reset()

  def step(self, substeps: int = 1) -> None:
    """Advance by `substeps` time steps."""
    self._evaluate(substeps, 1)

  def forward(self) -> None:
    """Compute derived quantities of the present state."""
    self._evaluate(1, 0)

  def reset(self) -> None:
    """Set the model's defaults."""
    self._memory[:] = 0.0
    self._memory[self.layout.blocks["mask"].start] = 1.0
    self._controls[:] = 0.0
    data = mujoco.MjData(self.model.mj)
    for name, block in self.layout.blocks.items():
      if name in STATE:
        self._memory[block.start : block.start + block.rows] = np.reshape(getattr(data, name), (-1, 1))
    wait = self.layout.blocks["sensor_wait"]
    self._memory[wait.start : wait.start + wait.rows] = np.reshape(waits_at_start(self.model), (-1, 1))

  def _evaluate(self, substeps: int, integrate: int) -> None:
    arrays = {"state": self._memory} | ({"control": self._controls} if self.model.nu else {})
    with np.errstate(all="ignore"):
      self.run(substeps, 0, integrate, **arrays)


@contextmanager
def _converging(dtype: type[np.floating]) -> Iterator[None]:
  """Trace the solver with tolerances for float64 in the block; its own are for float32.

  Stiff rows turn the last digits of qacc into forces, so that no step is too small to take.
  """
  tolerances = {"TOLERANCE": 1e-13, "STEP_TOLERANCE": 1e-17} if dtype == np.float64 else {}
  before = {name: getattr(newton, name) for name in tolerances}
  for name, tolerance in tolerances.items():
    setattr(newton, name, tolerance)
  try:
    yield
  finally:
    for name, tolerance in before.items():
      setattr(newton, name, tolerance)
