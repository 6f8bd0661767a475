"""What every task shares: the step of a batch of environments, named rewards and observations, resets."""

import dataclasses
import difflib
import functools
import itertools
import math
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import torch
from tensordict import TensorDict
from torch import Tensor

import physics

ASSETS = Path(__file__).resolve().parents[1] / "assets"

# A transition whose magnitudes sum to more than this counts as diverged, like one with nan or inf. No robot
# of a few metres and kilogrammes comes near it.
DIVERGED = 1e7


def option(default: Any, meaning: str, unit: str = "", low: float = -math.inf, high: float = math.inf) -> Any:
  """Return a Config field: its default, and the meaning, unit and limits that the command line uses."""
  metadata = {"help": meaning, "unit": unit, "low": low, "high": high}
  return dataclasses.field(default=default, metadata=metadata)


@dataclasses.dataclass
class Config:
  """Settings of a task. A field `reward_x` is the weight of the reward term `x`."""

  episode_steps: int = option(1000, "control steps until the time limit", low=1)
  substeps: int = option(4, "physics steps in a control step", low=1)


class Random(Protocol):
  """Random numbers per environment, keyed by purpose and by a step counter that lives on the device."""

  def uniform(self, purpose: str, shape: tuple[int, ...], low: float = 0.0, high: float = 1.0) -> Tensor:
    """Return numbers [num_envs, *shape] in [low, high)."""

  def advance(self) -> None:
    """Move the step counter by one."""

  def state_dict(self) -> dict[str, Any]:
    """Return what the future numbers depend on."""

  def load_state_dict(self, state: dict[str, Any]) -> None:
    """Continue from `state`."""


class Task:
  """A batch of environments of one task.

  A task names its `robot` and writes `reward` and `observe`, and those of the other methods that it needs.
  They see all environments at once: tensors are [num_envs, ...], static in shape, never read by the host.
  State is in `self.sim` and in buffers, both written in place.
  """

  robot: Path | str  # MJCF file or text

  def __init__(
    self,
    config: Config,
    num_envs: int,
    device: torch.device | str = "cpu",
    *,
    random: Random,
    training: bool = True,
    simulation: Any = None,
  ) -> None:
    """Build `num_envs` environments; in training their first episodes start at random phases.

    `simulation` is any object with the contract of `physics.Simulation`; None makes one, on torch's threads.
    """
    if simulation is None:
      simulation = physics.Simulation(
        physics.load_model(self.robot), num_envs, device, torch.get_num_threads()
      )
    self.config = config
    self.num_envs = num_envs
    self.device = torch.device(device)
    self.random = random
    self.training = training
    self.sim = simulation
    self.model = simulation.model
    self.num_actions: int = self.model.nu
    self.max_episode_steps = config.episode_steps
    self.dt: float = config.substeps * self.model.timestep  # control step [s]
    self._made: list[Tensor] = []
    self.action = self.buffer(self.num_actions)  # of the present step, in [-1, 1]
    self.episode_steps = self.buffer(dtype=torch.int64)  # control steps since the episode's start
    self._overflow = torch.zeros((), dtype=torch.int64, device=self.device)
    self._nonfinite = torch.zeros((), dtype=torch.int64, device=self.device)
    self.setup()
    self._buffers = self._find_buffers()
    self._weights = self._reward_weights()
    self.obs_dims = {group: obs.shape[1] for group, obs in self._observe().items()}

  # ---- what a task writes ----

  def setup(self) -> None:
    """Look names up, make constants and buffers."""

  def initial_state(self) -> dict[str, Tensor]:
    """Return candidates [num_envs, ...] for the start of an episode, by name: `qpos`, `qvel` or a buffer.

    Base keeps them where an episode ended. What is not named starts at the model's default, a buffer at zero.
    The final state is still visible.
    """
    return {}

  def control(self) -> None:
    """Write `sim.ctrl` from `action`. The default maps [-1, 1] onto each actuator's control range."""
    middle, half = self._control_range
    self.sim.ctrl.copy_(torch.addcmul(middle, half, self.action))

  def update(self) -> None:
    """Advance the task's buffers, once per step after the physics."""

  def reward(self) -> dict[str, Tensor]:
    """Return the unweighted terms of the reward by name, each [num_envs]."""
    raise NotImplementedError

  def terminated(self) -> Tensor:
    """Return where the episode failed or succeeded [num_envs] bool: nowhere by default. Time is base's."""
    return torch.zeros(self.num_envs, dtype=torch.bool, device=self.device)

  def observe(self) -> dict[str, dict[str, Tensor]]:
    """Return named blocks [num_envs] or [num_envs, n] per group: `policy`, maybe `critic`. Change nothing."""
    raise NotImplementedError

  def metrics(self) -> dict[str, Tensor]:
    """Return further quantities [num_envs] to log."""
    return {}

  # ---- what setup uses ----

  def buffer(self, *shape: int, dtype: torch.dtype = torch.float32) -> Tensor:
    """Return zeros [num_envs, *shape], to be kept as an attribute and written in place.

    A buffer is zeroed where an episode ends, unless `initial_state` names it, and is part of a checkpoint.
    """
    self._made.append(torch.zeros(*shape, self.num_envs, dtype=dtype, device=self.device).movedim(-1, 0))
    return self._made[-1]

  def constant(self, values: Any) -> Tensor:
    """Return numbers as a float32 tensor on the device."""
    return torch.tensor(np.asarray(values), dtype=torch.float32, device=self.device)

  def qpos_of(self, *joints: str) -> slice | Tensor:
    """Return the columns of `qpos` of the named joints: a slice, which makes a view, if evenly spaced."""
    return self._columns(joints, self.model.jnt_qposadr, (7, 4, 1, 1))

  def qvel_of(self, *joints: str) -> slice | Tensor:
    """Return the columns of `qvel` of the named joints: a slice, which makes a view, if evenly spaced."""
    return self._columns(joints, self.model.jnt_dofadr, (6, 3, 1, 1))

  def body_of(self, *bodies: str) -> slice | Tensor:
    """Return the rows of `xpos`, `xquat`, `cfrc_ext` of the named bodies: a slice if evenly spaced."""
    return self._pick([self.model.body_id(name) for name in bodies])

  def ctrl_of(self, *actuators: str) -> slice | Tensor:
    """Return the columns of `ctrl` of the named actuators, in order: a slice if evenly spaced."""
    owner = np.repeat(np.arange(self.model.nactuator), self.model.actuator_ctrlnum)
    ids = map(self.model.actuator_id, actuators)
    return self._pick([control for actuator in ids for control in np.flatnonzero(owner == actuator).tolist()])

  # ---- what a trainer uses ----

  def reset(self) -> TensorDict:
    """Start every episode anew and return the observation groups [num_envs]."""
    self.random.advance()
    self._reset(torch.ones(self.num_envs, dtype=torch.bool, device=self.device))
    if self.training:
      phase = self.random.uniform("phase", ()) * self.max_episode_steps
      self.episode_steps.copy_(phase)
    return TensorDict(self._observe(), batch_size=[self.num_envs])

  def step(self, action: Tensor) -> TensorDict:
    """Apply `action` [num_envs, num_actions], clipped to [-1, 1], for one control step; reset what has ended.

    The result [num_envs] holds obs, final_obs, reward, terminated, truncated, valid, reward_terms, metrics.
    Where `valid` is false the simulation diverged: reward is zero, final_obs is the obs after the reset.
    """
    self.random.advance()
    self.action.copy_(action.clamp(-1.0, 1.0))
    self.control()
    self.sim.step(self.config.substeps)
    self.episode_steps += 1
    self.update()
    terms = {name: self._weights[name] * term.to(torch.float32) for name, term in self.reward().items()}
    reward = torch.stack(list(terms.values())).sum(0)
    final_obs = self._observe()
    valid = self._finite(reward, final_obs)
    terminated = self.terminated() & valid
    truncated = (self.episode_steps >= self.max_episode_steps) & ~terminated & valid
    metrics = {name: value.to(torch.float32).where(valid, 0.0) for name, value in self.metrics().items()}
    self._overflow += self.sim.overflow.sum()
    self._nonfinite += (~valid).sum()
    self._reset(terminated | truncated | ~valid)
    obs = self._observe()
    result = {
      "obs": obs,
      "final_obs": {group: torch.where(valid.unsqueeze(1), final_obs[group], obs[group]) for group in obs},
      "reward": reward.where(valid, 0.0),
      "terminated": terminated,
      "truncated": truncated,
      "valid": valid,
      "reward_terms": {name: term.where(valid, 0.0) for name, term in terms.items()},
      "metrics": metrics,
    }
    return TensorDict(result, batch_size=[self.num_envs])

  def counters(self) -> dict[str, Tensor]:
    """Return counts since the start, scalars on the device: contacts dropped, transitions that diverged."""
    return {"overflow": self._overflow, "nonfinite": self._nonfinite}

  def state_dict(self) -> dict[str, Any]:
    """Return everything that the future of these environments depends on."""
    return {
      "simulation": self.sim.get_state().clone(),
      "buffers": {name: buffer.clone() for name, buffer in self._buffers.items()},
      "counters": {name: count.clone() for name, count in self.counters().items()},
      "random": self.random.state_dict(),
    }

  def load_state_dict(self, state: dict[str, Any]) -> None:
    """Continue exactly from `state`, which the same task with the same number of environments returned."""
    self.sim.set_state(state["simulation"])
    for name, buffer in self._buffers.items():
      buffer.copy_(state["buffers"][name])
    for name, count in self.counters().items():
      count.copy_(state["counters"][name])
    self.random.load_state_dict(state["random"])

  # ---- inside ----

  def _observe(self) -> dict[str, Tensor]:
    """Return each observation group as one float32 tensor [num_envs, d], its blocks side by side."""
    return {
      group: torch.cat(
        [block.reshape(self.num_envs, -1).to(torch.float32) for block in blocks.values()], dim=1
      )
      for group, blocks in self.observe().items()
    }

  def _finite(self, reward: Tensor, obs: dict[str, Tensor]) -> Tensor:
    """Return where the transition is finite and sane [num_envs] bool (a comparison with nan is false)."""
    parts = [self.sim.qpos, self.sim.qvel, *obs.values()]
    return torch.stack([reward.abs(), *(part.abs().sum(1) for part in parts)]).sum(0) < DIVERGED

  def _reset(self, ended: Tensor) -> None:
    """Start a new episode where `ended` [num_envs] is true."""
    candidates = self.initial_state()
    self.sim.reset(ended)
    targets = {"qpos": self.sim.qpos, "qvel": self.sim.qvel} | self._buffers
    for name in candidates:
      if name not in targets:
        raise ValueError(f"initial_state names '{name}', {_nearest(name, targets)}")
    for name, target in targets.items():
      if name in self._buffers and getattr(self, name) is not target:
        raise RuntimeError(f"buffer '{name}' was rebound; write it in place: self.{name}.copy_(...)")
      mask = ended.view(-1, *[1] * (target.ndim - 1))
      if name in candidates:
        target.copy_(torch.where(mask, candidates[name].to(target.dtype), target))
      elif name in self._buffers:
        target.masked_fill_(mask, 0)
    self.sim.forward(ended)

  @functools.cached_property
  def _control_range(self) -> tuple[Tensor, Tensor]:
    """The middle and half width of each control's range [nu]; ValueError where one has none."""
    names = np.repeat(self.model.actuator_names, self.model.actuator_ctrlnum)
    for name, limited in zip(names, self.model.actuator_ctrllimited, strict=True):
      if not limited:
        raise ValueError(f"actuator '{name}' has no ctrlrange for the actions: give it one, or write control")
    low, high = self.constant(self.model.actuator_ctrlrange).unbind(-1)
    return (low + high) / 2, (high - low) / 2

  def _find_buffers(self) -> dict[str, Tensor]:
    """Return the attributes that `buffer` made."""
    return {name: value for name, value in vars(self).items() if any(value is made for made in self._made)}

  def _reward_weights(self) -> dict[str, float]:
    """Return the weight of each reward term: the Config field `reward_<term>`."""
    prefix = "reward_"
    names = [field.name for field in dataclasses.fields(self.config) if field.name.startswith(prefix)]
    terms = [prefix + term for term in self.reward()]
    for name in sorted({*names} ^ {*terms}):
      lacking, known = (
        ("reward() has no such term", terms) if name in names else ("Config has no such field", names)
      )
      raise ValueError(f"{name}: {lacking}, {_nearest(name, known)}")
    return {name.removeprefix(prefix): getattr(self.config, name) for name in names}

  def _columns(self, joints: tuple[str, ...], address: np.ndarray, widths: tuple[int, ...]) -> slice | Tensor:
    """Return the columns of `joints` from each one's first and the widths of free, ball, slide and hinge."""
    columns: list[int] = []
    for joint in map(self.model.joint_id, joints):
      columns += range(address[joint], address[joint] + widths[self.model.jnt_type[joint]])
    return self._pick(columns)

  def _pick(self, index: list[int]) -> slice | Tensor:
    """Return `index` as a slice if it is evenly spaced upwards, else as a tensor."""
    steps = {b - a for a, b in itertools.pairwise(index)} or {1}
    if len(steps) == 1 and min(steps) > 0:
      return slice(index[0], index[-1] + 1, min(steps))
    return torch.as_tensor(index, device=self.device)


def _nearest(name: str, known: Any) -> str:
  """Say which of the known names is meant."""
  near = difflib.get_close_matches(name, list(known), n=1, cutoff=0.0)
  return f"nearest: '{near[0]}'" if near else "there is none"
