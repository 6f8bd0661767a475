"""Physics on any device, timed: control steps from a situation, on CUDA each of them a graph."""

import time
from collections.abc import Callable
from typing import Protocol

import torch
from torch import Tensor

import physics
from benchmarks import cases, engine
from gpurobot.device.graph import Graph, GraphRecorder


class Engine(Protocol):
  """What is timed."""

  ctrl: Tensor  # [num_envs, nu]

  @property
  def step(self) -> Callable[[], None]:
    """What takes a control step."""

  def start(self, start: engine.Situation) -> None:
    """Go to where the run starts."""


class Own:
  """This project's engine."""

  def __init__(self, model: physics.Model, num_envs: int, device: torch.device) -> None:
    self.sim = physics.Simulation(model, num_envs, device)
    self.qpos, self.ctrl = self.sim.qpos, self.sim.ctrl
    self.step = Graph(self._step, GraphRecorder(device) if device.type == "cuda" else None)

  def _step(self) -> None:
    self.sim.step(cases.SUBSTEPS)

  def start(self, start: engine.Situation) -> None:
    """Go to where the run starts."""
    self.sim.set_state(repeated(start.state.T, self.sim.num_envs).T.to(self.sim.device))

  def dropped(self) -> int:
    """Return how many contacts the last step had no room for."""
    return int(self.sim.overflow.sum())


def controls_of(start: engine.Situation, num_envs: int, device: torch.device) -> Tensor:
  """Return the controls of a run [steps, num_envs, nu], those of the first environments again and again."""
  return repeated(start.controls.to(device).transpose(0, 1), num_envs).transpose(0, 1).contiguous()


def repeated(values: Tensor, count: int) -> Tensor:
  """Return so many rows: those of values, again and again."""
  return values[torch.arange(count) % len(values)]


def timed(engine_: Engine, start: engine.Situation, controls: Tensor) -> Callable[[], float]:
  """Return a measurement of an engine: substeps/s from the start of the situation."""

  def measure() -> float:
    engine_.start(start)
    _wait(controls)
    begin = time.perf_counter()
    for ctrl in controls:
      engine_.ctrl.copy_(ctrl)
      engine_.step()
    _wait(controls)
    return controls.shape[0] * controls.shape[1] * cases.SUBSTEPS / (time.perf_counter() - begin)

  return measure


def _wait(tensor: Tensor) -> None:
  if tensor.is_cuda:
    torch.cuda.synchronize(tensor.device)
