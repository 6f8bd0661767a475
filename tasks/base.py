"""The base of every task: the step of a batch of environments, named rewards and observations, resets."""

import functools
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from tensordict import TensorDict
from torch import Tensor

import physics
from tasks.core import validation
from tasks.core.config import Config, option
from tasks.core.control import control_range
from tasks.core.errors import TaskError, reports_task_errors
from tasks.core.event import Event
from tasks.core.names import Names, hint
from tasks.core.observation import Observations, Reflection
from tasks.core.random import Random
from tasks.core.reward import weigh
from tasks.core.shapes import like
from tasks.core.state_history import StateHistory
from tasks.core.substep_runner import SubstepRunner

__all__ = ["ASSETS", "Config", "Random", "Reflection", "Task", "option"]  # what task files use
ASSETS = Path(__file__).resolve().parents[1] / "assets"

# A transition whose magnitudes sum to more than this counts as diverged, like one with nan or inf. No robot
# of a few metres and kilogrammes comes near it.
DIVERGED = 1e7


class Task(Names):
  """A batch of environments of one task.

  A task names its `robot` and writes `reward` and `observe`, and those of the other methods that it needs.
  They see all environments at once: tensors are [num_envs, ...], static in shape, never read by the host.
  State is in `self.sim` and in buffers, both written in place.
  """

  robot: Path | str  # MJCF file or text
  vary: tuple[str, ...] = ()  # fields of which every environment has its own, see physics/vary/variable.py
  # Derived quantities to compute, or what becomes of each over a step: last, mean, max; None: the usual ones.
  outputs: Sequence[str] | Mapping[str, str] | None = None
  moving_capacity: int | None = None  # contacts between moving bodies there is room for; None: see Simulation
  choices: tuple[int, ...] = ()  # of each action, how many; empty: numbers in [-1, 1], one per control

  def __init_subclass__(cls) -> None:
    """Raise TaskError where the methods of a task are not what the base calls."""
    validation.check_class(cls, Task)

  @reports_task_errors
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
    Raises TaskError, in one line, where the task's author is wrong.
    """
    validation.check_complete(type(self), Task, config)
    self.config = config
    self.num_envs, self.device = num_envs, torch.device(device)
    self.random, self.training = random, training
    threads = torch.get_num_threads()
    self.sim: physics.Simulation = simulation or physics.Simulation(
      self.make_model(config), num_envs, device, threads, self.outputs, self.moving_capacity
    )
    self.model: physics.Model = self.sim.model
    self._substep_runner = SubstepRunner(self.sim, self.outputs)
    self.num_actions = validation.count_actions(self.action_names())
    self.max_episode_steps = self.least_between_truncations = config.episode_steps
    self.dt: float = config.substeps * self.model.timestep  # control step [s]
    self.begin_part: Callable[[str], None] = lambda _part: None  # what time goes to from now on
    self._made, self._made_to_last = list[Tensor](), list[Tensor]()
    self.events: dict[str, Event] = {}
    kind = torch.int64 if self.choices else torch.float32
    self.action = self.buffer(self.num_actions, dtype=kind)  # of the present step: in [-1, 1], or choices
    self.episode_steps = self.buffer(dtype=torch.int64)  # control steps since the episode's start
    self._overflow, self._nonfinite = torch.zeros(2, dtype=torch.int64, device=self.device).unbind()
    self._validated = simulation is not None  # what is handed in is stepped by its owner alone
    kept = config.keep_states if training else 0
    self._state_history = StateHistory(self.sim, num_envs, kept) if kept else None
    self._set_up()

  @classmethod
  def make_model(cls, config: Any) -> physics.Model:
    """Return the model of the scene that the settings ask for."""
    return physics.load_model(cls.scene(config), vary=cls.vary)

  # ---- what a task writes ----

  @classmethod
  def scene(cls, config: Any) -> Path | str:  # noqa: ARG003
    """Return the MJCF file or text of the world: by default the robot's own, whatever the settings."""
    return cls.robot

  def action_names(self) -> Sequence[str]:
    """Return a name for each action: by default the actuator's for each control, or a number per choice."""
    if self.choices:
      return [f"choice {index}" for index in range(len(self.choices))]
    return np.repeat(self.model.actuator_names, self.model.actuator_ctrlnum).tolist()

  def setup(self) -> None:
    """Look names up, make constants and buffers."""

  def initial_state(self) -> dict[str, Tensor]:
    """Return candidates [num_envs, ...] for the start of an episode, by name.

    Names are `qpos`, `qvel`, `mocap_pos`, `mocap_quat`, buffers and the fields of `vary`; base keeps the
    candidates where an episode ended. What is not named starts at the model's default, a buffer at zero;
    varied fields and lasting buffers stay as they are. The final state is still visible.
    """
    return {}

  def control(self) -> None:
    """Write `sim.ctrl` from `action`. The default maps [-1, 1], or the choices, onto each control's range."""
    offset, scale = self._control_range
    self.sim.ctrl.copy_(torch.addcmul(offset, scale, self.action.to(torch.float32)))

  def simulate(self) -> None:
    """Let the control step's time pass: by default under constant controls."""
    self.advance(self.config.substeps)

  def update(self) -> None:
    """Advance the task's buffers, once per step after the physics."""

  def reward(self) -> dict[str, Tensor]:
    """Return the unweighted terms of the reward by name, each [num_envs]."""
    raise NotImplementedError

  def terminated(self) -> Tensor:
    """Return where the episode failed or succeeded [num_envs] bool: nowhere by default. Time is base's."""
    return torch.zeros(self.num_envs, dtype=torch.bool, device=self.device)

  def success(self) -> Tensor | None:
    """Return where an episode that ends now has succeeded [num_envs] bool; None: success has no meaning."""
    return None

  def observe(self) -> dict[str, dict[str, Tensor]]:
    """Return named blocks [num_envs] or [num_envs, n] per group: `policy`, maybe `critic`. Change nothing."""
    raise NotImplementedError

  def metrics(self) -> dict[str, Tensor]:
    """Return further quantities [num_envs] to log."""
    return {}

  def symmetry(self) -> Mapping[str, Reflection]:
    """Return what becomes of `action` and each block of `policy` in the mirror, or nothing without symmetry.

    It is a list of signs, or (index, signs) where numbers change places: x[i] becomes signs[i] * x[index[i]].
    """
    return {}

  # ---- what setup and simulate use ----

  def buffer(self, *shape: int, dtype: torch.dtype = torch.float32, lasting: bool = False) -> Tensor:
    """Return zeros [num_envs, *shape], to be kept as an attribute and written in place.

    A buffer is zeroed where an episode ends, unless it is lasting or `initial_state` names it. It is part of
    a checkpoint.
    """
    if hasattr(self, "_buffers"):
      raise TaskError("buffer() makes memory that lasts: call it in setup()")
    self._made.append(torch.zeros(*shape, self.num_envs, dtype=dtype, device=self.device).movedim(-1, 0))
    if lasting:
      self._made_to_last.append(self._made[-1])
    return self._made[-1]

  def every(self, low: float, high: float, act: Callable[[], dict[str, Tensor]]) -> None:
    """Let `act` happen to each environment at intervals drawn from [low, high) s.

    It returns candidates [num_envs, ...] by name, as `initial_state` does; base keeps them where it happens:
    after the rewards of a step, before its observation.
    """
    name = act.__name__
    if name in self.events:
      raise ValueError(f"there are two events '{name}': give each a name of its own")
    if not 0 < low <= high:
      raise ValueError(f"event '{name}' happens every {low:g} to {high:g} s: write 0 < low <= high")
    left = torch.zeros(self.num_envs, device=self.device)
    self.events[name] = Event(act, (low, high), self.random.uniform, left)

  def rays(
    self,
    body: str,
    origins: Sequence[Sequence[float]],
    directions: Sequence[Any],
    frame: physics.RayFrame = "body",
    geoms: Sequence[str] = (),
  ) -> physics.RayCaster:
    """Return what casts rays from a body at the named geoms (none: all that are seen), see RayCaster."""
    chosen = [self.model.geom_id(name) for name in geoms] or None
    return physics.RayCaster(self.sim, body, origins, directions, frame, chosen)

  def constant(self, values: Any) -> Tensor:
    """Return numbers as a float32 tensor on the device."""
    return torch.tensor(np.asarray(values), dtype=torch.float32, device=self.device)

  def advance(self, substeps: int, ctrl: Tensor | None = None) -> None:
    """Take time steps under `ctrl` [num_envs, substeps, nu], or `sim.ctrl`; several calls make one step."""
    self._substep_runner.advance(substeps, ctrl)

  # ---- what a trainer uses ----

  @reports_task_errors
  def reset(self) -> TensorDict:
    """Start every episode anew and return the observation groups [num_envs]."""
    everywhere = torch.ones(self.num_envs, dtype=torch.bool, device=self.device)
    if not self._validated:
      self._validate(everywhere)
    self._advance()
    self._reset(everywhere, everywhere)
    if self.training:
      phase = self.random.uniform("phase", ()) * self.max_episode_steps
      self.episode_steps.copy_(phase)
    return TensorDict(self.observations.restart(self.observe(), everywhere), batch_size=[self.num_envs])

  def step(self, action: Tensor) -> TensorDict:
    """Apply `action` [num_envs, num_actions] for one control step; reset what has ended.

    It is clipped to [-1, 1]; where there are `choices` it holds their numbers, int64. The result [num_envs]
    holds obs, final_obs, reward, terminated, truncated, valid, reward_terms, metrics and, of a task that
    knows it, success: whether an episode that ended with this step succeeded. Where `valid` is false the
    simulation diverged: reward is zero, final_obs is the obs after the reset.
    """
    self._advance()
    self.action.copy_(action if self.choices else action.clamp(-1.0, 1.0))
    self.control()
    self.begin_part("physics")
    self._substep_runner.begin()
    self.simulate()
    self.begin_part("task")
    self.episode_steps += 1
    self.update()
    rewards = {name: self.reward_weights[name] * term.float() for name, term in self.reward().items()}
    terms = torch.stack(list(rewards.values()))
    reward = terms.sum(0)
    terminated, success = self.terminated(), self.success()
    metrics = {name: value.to(torch.float32, copy=True) for name, value in self.metrics().items()}
    self._happen()
    final_obs = self.observations.push(self.observe())
    valid = self._finite(reward, final_obs)
    terminated = terminated & valid
    truncated = (self.episode_steps >= self.max_episode_steps) & ~terminated & valid
    self._overflow += self._substep_runner.dropped()
    self._nonfinite += (~valid).sum()
    ended = terminated | truncated
    if self._state_history:
      self._state_history.add(reward, valid, ended)
    outcome = {} if success is None else {"success": success & ended}
    self._reset(ended | ~valid, valid)
    obs = self.observations.restart(self.observe(), ended | ~valid)
    result = {
      "obs": obs,
      "final_obs": {group: torch.where(valid.unsqueeze(1), final_obs[group], obs[group]) for group in obs},
      "reward": reward.where(valid, 0.0),
      "terminated": terminated,
      "truncated": truncated,
      "valid": valid,
      "reward_terms": dict(zip(rewards, terms.where(valid, 0.0).unbind(0), strict=True)),
      "metrics": {name: value.where(valid, 0.0) for name, value in metrics.items()},
      **outcome,
    }
    return TensorDict(result, batch_size=[self.num_envs])

  def counters(self) -> dict[str, Tensor]:
    """Return counts since the start, scalars on the device: contacts dropped, transitions that diverged."""
    return {"overflow": self._overflow, "nonfinite": self._nonfinite}

  def diverged(self) -> TensorDict:
    """Return the last states of environments that diverged since the last call, see StateHistory.take."""
    return self._state_history.take() if self._state_history else TensorDict(batch_size=[0])

  def state_dict(self) -> dict[str, Any]:
    """Return everything that the future of these environments depends on."""
    return {
      "simulation": self.sim.get_state().clone(),
      "memory": {name: memory.clone() for name, memory in self._memory().items()},
      "counters": {name: count.clone() for name, count in self.counters().items()},
      "random": self.random.state_dict(),
    }

  def load_state_dict(self, state: dict[str, Any]) -> None:
    """Continue exactly from `state`, which the same task with the same number of environments returned."""
    self.sim.set_state(state["simulation"])
    for name, memory in self._memory().items():
      memory.copy_(state["memory"][name])
    for name, count in self.counters().items():
      count.copy_(state["counters"][name])
    self.random.load_state_dict(state["random"])
    if self._state_history:
      self._state_history.restart()

  # ---- inside ----

  def _set_up(self) -> None:
    """Let the task make what it remembers, and learn the names and widths of all that it returns."""
    views = dict(vars(self.sim))
    self.setup()
    validation.check_views("self.sim", self.sim, views)
    self._buffers, self._lasting = self._named(self._made), self._named(self._made_to_last)
    mocap = ("mocap_pos", "mocap_quat") if self.model.nmocap else ()
    names = ("qpos", "qvel", *mocap, *self.model.varied)
    self._targets = {name: getattr(self.sim, name) for name in names} | self._buffers  # of candidates
    validation.check_terms("reward()", terms := self.reward(), self.episode_steps)
    self.reward_weights = weigh(self.config, terms)
    validation.check_blocks(blocks := self.observe(), self.episode_steps)
    self.observations = Observations(blocks, self.config, noisy=self.training)
    self.obs_dims, self.obs_names = self.observations.dims, self.observations.names
    symmetry = self.symmetry()
    if symmetry and self.choices:
      raise TaskError("symmetry() is of actions in [-1, 1]; this task has choices")
    mirror = self.observations.mirror(symmetry, self.num_actions) if symmetry else None
    self.mirror: Mapping[str, tuple[Tensor, Tensor]] | None = mirror

  def _memory(self) -> dict[str, Tensor]:
    """Return all that is remembered from step to step outside of the simulation's state, by name."""
    events = {f"left until {name}": event.left for name, event in self.events.items()}
    outputs = physics.default_outputs(self.model) if self.outputs is None else self.outputs
    derived = {f"derived {name}": getattr(self.sim, name) for name in outputs}  # control may read them
    return {**self._buffers, **events, **derived, **self.observations.memory}

  def _advance(self) -> None:
    """Begin a step: move to its random numbers, draw its noise."""
    self.random.advance()
    self.observations.draw(self.random.uniform)

  def _validate(self, everywhere: Tensor) -> None:
    """Try a step out and take it back; TaskError at what its author did wrong."""
    before = self.state_dict()
    self._advance()
    self._reset(everywhere, everywhere)
    validation.check_step(self, DIVERGED)
    self.load_state_dict(before)
    self._validated = True

  def _finite(self, reward: Tensor, obs: dict[str, Tensor]) -> Tensor:
    """Return where the transition is finite and sane [num_envs] bool (a comparison with nan is false)."""
    parts = [reward.unsqueeze(1), self.sim.qpos, self.sim.qvel, *obs.values()]
    # A product with ones is a sum, twice as fast.
    return torch.stack([part.abs() @ part.new_ones(part.shape[1]) for part in parts]).sum(0) < DIVERGED

  def _reset(self, ended: Tensor, valid: Tensor) -> None:
    """Start a new episode where `ended` [num_envs] is true; a lasting buffer learns only from valid ones."""
    learns = ended & valid
    # Taken before anything is written: candidates may be views of what the reset changes.
    starts = {
      name: self._choose("initial_state", name, candidate, learns if name in self._lasting else ended)
      for name, candidate in validation.by_name("initial_state()", self.initial_state()).items()
    }
    self.sim.reset(ended)
    validation.check_views("self", self, self._buffers)
    for name, buffer in self._buffers.items():
      if name not in starts and name not in self._lasting:
        buffer.masked_fill_(like(ended, buffer), 0)
    for name, start in starts.items():
      self._targets[name].copy_(start)
    for event in self.events.values():
      event.restart(ended)
    self.begin_part("physics")
    self.sim.forward(ended)
    self.begin_part("task")

  def _happen(self) -> None:
    """Let events happen where their time has come."""
    for name, event in self.events.items():
      due = event.due(self.dt)
      changes = {key: self._choose(name, key, value, due) for key, value in event.candidates().items()}
      for key, change in changes.items():
        self._targets[key].copy_(change)

  def _choose(self, source: str, name: str, candidate: Tensor, where: Tensor) -> Tensor:
    """Return the candidate for what it names where `where` [num_envs] is true, else what is there."""
    if name not in self._targets:
      raise TaskError(f"{source}() names '{name}', {hint(name, self._targets)}")
    target = self._targets[name]
    validation.check_tensor(f"{source}() '{name}'", candidate, target)
    return torch.where(like(where, target), candidate.to(target.dtype), target)

  @functools.cached_property
  def _control_range(self) -> Tensor:
    """The offset and factor [2, nu] from each action to its control."""
    return self.constant(control_range(self.model, self.num_actions, self.choices))

  def _named(self, made: list[Tensor]) -> dict[str, Tensor]:
    """Return buffers by the names of the attributes that hold them."""
    named = {name: value for name, value in vars(self).items() if any(value is one for one in made)}
    if len({*map(id, named.values())}) < len(made):
      raise TaskError("a buffer has no name: write self.<name> = self.buffer(...), and no part or list of it")
    return named
