"""Shared parts of the tasks of the DeepMind Control Suite: robot files, rewards, starts, observations.

Observations, rewards, starts and time limits of `tasks/dm/` follow the suite (Tassa et al. 2018,
https://arxiv.org/abs/1801.00690) as dm_control has them; its robot files are used. An action in [-1, 1] is
mapped onto the control range; in dm_control, the action is the control itself.
"""

import functools
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any
from xml.etree import ElementTree as ET

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from physics.host import evaluate
from tasks import base
from tasks.base import option
from tasks.shared import mjcf, packaged, reward

Arrays = dict[str, NDArray[np.float64]]
FREE, SLIDE, HINGE = 0, 2, 3  # of Model.jnt_type
XX, XZ, ZX, ZY, ZZ = 0, 2, 6, 7, 8  # columns of rotation matrices, which are stored row by row

FOLDER = packaged.folder("dm_control", "dm/*", "'gpurobot[dm]'") / "suite"
TRAIN = packaged.TRAIN
PPO = packaged.PPO | {"reward_scale": 1.0}  # rewards are between 0 and 1


def read(name: str) -> ET.Element:
  """Return the root of a robot file of the suite."""
  return mjcf.read(FOLDER / name)


# ---- rewards and observations ----


def small(control: Tensor) -> Tensor:
  """Return a factor [num_envs] between 0.8, for full controls [num_envs, nu], and 1, for none."""
  return (4.0 + reward.tolerance(control, margin=1.0, shape="quadratic", at_margin=0.0).mean(1)) / 5.0


def lean(xmat: Tensor) -> Tensor:
  """Return cosine and sine of the lean [..., 2] of bodies in the plane of x and z, from xmat [..., 9]."""
  return torch.stack([xmat[..., ZZ], xmat[..., XZ]], dim=-1)


def planar_pose(xpos: Tensor, xquat: Tensor) -> Tensor:
  """Return x, z, and w and y of the quaternion [..., 4], from xpos [..., 3] and xquat [..., 4]."""
  return torch.cat([xpos[..., ::2], xquat[..., ::2]], dim=-1)


# ---- starts ----


def start_range(model: Any) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
  """Return the lowest and the highest start position, [nq] each.

  Joints with limits start anywhere between them, other hinges at any angle, and the rest where the robot file
  has them. All numbers of a quaternion are drawn from [0, 1] and then normalised, as in dm_control.
  """
  low, high = model.qpos0.copy(), model.qpos0.copy()
  for kind, column, limited, limits in zip(
    model.jnt_type, model.jnt_qposadr, model.jnt_limited, model.jnt_range, strict=True
  ):
    if kind in {HINGE, SLIDE} and limited:
      low[column], high[column] = limits
    elif kind == HINGE:
      low[column], high[column] = -np.pi, np.pi
    elif kind == FREE:
      low[column + 3 : column + 7], high[column + 3 : column + 7] = 0.0, 1.0
  return low, high


def draw_positions(model: Any, random: np.random.Generator, count: int) -> NDArray[np.float64]:
  """Return start positions [count, nq], see start_range."""
  qpos = random.uniform(*start_range(model), (count, model.nq))
  for column in model.jnt_qposadr[model.jnt_type == FREE]:
    turn = qpos[:, column + 3 : column + 7]
    turn /= np.linalg.norm(turn, axis=1, keepdims=True)
  return qpos


def apart(model: Any, states: Arrays) -> Arrays:
  """Return the contact-free ones of n states [n, ...]."""
  free = evaluate(model, states, ["ncon"])["ncon"] == 0
  return {name: values[free] for name, values in states.items()}


@functools.lru_cache(maxsize=4)
def _draw(draw: Callable[[Any, np.random.Generator, int], Arrays], model: Any, count: int) -> Arrays:
  """Return `count` start states [count, ...] by name, the same for every task with that law and model."""
  random, rounds = np.random.default_rng(0), list[Arrays]()
  while sum(len(states["qpos"]) for states in rounds) < count:
    rounds.append(draw(model, random, count))
  return {name: np.concatenate([states[name] for states in rounds])[:count] for name in rounds[0]}


# ---- tasks ----


@dataclass
class Config(base.Config):
  """Settings of all tasks of the suite. Episodes have 1,000 steps and never terminate early."""

  reward_task: float = option(1.0, "weight of the suite's reward, which is between 0 and 1")


class Task(base.Task):
  """Task with rewards and observations of the state after the step, as in dm_control.

  As there, sensors of forces and accelerations read the last time step, just before that state.
  """

  config: Config
  force_sensors: tuple[str, ...] = ()  # sensors of forces and accelerations that are observed

  def setup(self) -> None:
    """Look up the sensors, create buffers for force sensors; store the range of start positions."""
    self._sensors = {name: self.model.sensor_slice(name) for name in self.model.sensor_names}
    if self.force_sensors:
      self._forces = self.buffer(self.sensed(*self.force_sensors).shape[1])  # [num_envs, width] [varies]
      self._stepped = self.buffer(1, dtype=torch.bool)  # whether the episode has begun [num_envs, 1]
    self.start_low, self.start_high = map(self.constant, start_range(self.model))  # [nq] each

  def initial_state(self) -> dict[str, Tensor]:
    """Start at rest, with joints anywhere between their limits."""
    share = self.random.uniform("start position", (self.model.nq,))
    return {"qpos": self.start_low + (self.start_high - self.start_low) * share}

  def update(self) -> None:
    """Keep the sensors of forces, and compute all other quantities anew."""
    if self.force_sensors:
      self._forces.copy_(self.sensed(*self.force_sensors))
      self._stepped.fill_(True)
    self.sim.forward()

  def forces(self) -> Tensor:
    """Return what `force_sensors` say [num_envs, width]."""
    return torch.where(self._stepped, self._forces, self.sensed(*self.force_sensors))

  def sensed(self, *sensors: str) -> Tensor:
    """Return what sensors say in the present state [num_envs, width]."""
    return torch.cat([self.sim.sensordata[:, self._sensors[name]] for name in sensors], dim=1)

  def product(self) -> Tensor:
    """Return the suite's reward [num_envs]."""
    raise NotImplementedError

  def reward(self) -> dict[str, Tensor]:
    """Return the suite's reward."""
    return {"task": self.product()}


@dataclass
class DrawnConfig(Config):
  """Settings of the tasks with start states drawn in advance."""

  starts: int = option(1024, "number of start states, drawn before the training", low=1)


class DrawnTask(Task):
  """Task with start states drawn in advance by MuJoCo C, as their law asks for contacts or for motion.

  An episode starts in any of them.
  """

  config: DrawnConfig

  @classmethod
  def draw(cls, model: Any, random: np.random.Generator, count: int) -> Arrays:
    """Return start states, at most `count`, as arrays [n, ...] by name; the default is apart and at rest."""
    return apart(model, {"qpos": draw_positions(model, random, count)})

  def setup(self) -> None:
    """Draw the start states."""
    super().setup()
    drawn = _draw(self.draw, self.model, self.config.starts)
    self.starts: Mapping[str, Tensor] = {name: self.constant(values) for name, values in drawn.items()}

  def initial_state(self) -> dict[str, Tensor]:
    """Start in one of the states."""
    chosen = (self.config.starts * self.random.uniform("start", ())).long()
    return {name: values[chosen] for name, values in self.starts.items()}
