"""Timing of physics engines on any device: control steps from a situation, each a graph on CUDA."""

import time
from collections.abc import Callable
from typing import Protocol

import torch
from torch import Tensor

import physics
from benchmarks import cases, engine
from gpurobot.device.graph import Graph, GraphRecorder


class Engine(Protocol):
  """Interface of a timed engine."""

  ctrl: Tensor  # [num_envs, nu]

  @property
  def step(self) -> Callable[[], None]:
    """The function that takes a control step."""

  def start(self, start: engine.Situation) -> None:
    """Set the start state of the run."""


class Own:
  """Engine of this project."""

  def __init__(self, model: physics.Model, num_envs: int, device: torch.device) -> None:
    self.sim = physics.Simulation(model, num_envs, device)
    self.qpos, self.ctrl = self.sim.qpos, self.sim.ctrl
    self.step = Graph(self._step, GraphRecorder(device) if device.type == "cuda" else None)

  def _step(self) -> None:
    self.sim.step(cases.SUBSTEPS)

  def start(self, start: engine.Situation) -> None:
    """Set the start state of the run."""
    self.sim.set_state(repeated(start.state.T, self.sim.num_envs).T.to(self.sim.device))

  def dropped(self) -> int:
    """Return the number of contacts that the last step dropped."""
    return int(self.sim.overflow.sum())


def controls_of(start: engine.Situation, num_envs: int, device: torch.device) -> Tensor:
  """Return the controls of a run [steps, num_envs, nu], repeated over the environments."""
  return repeated(start.controls.to(device).transpose(0, 1), num_envs).transpose(0, 1).contiguous()


def repeated(values: Tensor, count: int) -> Tensor:
  """Return `count` rows: the rows of `values` [n, ...], repeated cyclically [count, ...]."""
  return values[torch.arange(count) % len(values)]


def timed(engine_: Engine, start: engine.Situation, controls: Tensor) -> Callable[[], float]:
  """Return a function that measures an engine [substeps/s] with controls [steps, num_envs, nu]."""

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
