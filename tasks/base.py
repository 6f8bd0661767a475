"""Base class of all tasks: batched steps and resets, with rewards and observations by name."""

import functools
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any, Literal

import numpy as np
import torch
from tensordict import TensorDict
from torch import Tensor

import physics
from tasks.core import validation
from tasks.core.camera import Defects, TaskCamera
from tasks.core.command import Commands, Directed, Goal
from tasks.core.control import control_range
from tasks.core.errors import TaskError, reports_task_errors
from tasks.core.event import Event
from tasks.core.names import hint, names_of
from tasks.core.observation import Observations, Reflection
from tasks.core.option import Config, option
from tasks.core.random_source import RandomSource
from tasks.core.reward_weights import weigh, weighted
from tasks.core.sensing import Sensing, Sensor
from tasks.core.shapes import like
from tasks.core.state_history import StateHistory
from tasks.core.substep_runner import SubstepRunner

# for task files
__all__ = [
  "ASSETS", "Commands", "Config", "Defects", "Goal", "RandomSource", "Reflection", "Sensor", "Task", "option",
]  # fmt: skip
ASSETS = Path(__file__).resolve().parents[1] / "assets"

# A transition counts as diverged if its magnitudes sum to more than this, or if it has nan or inf. A robot of
# a few metres and kilogrammes stays far below.
DIVERGED = 1e7


class Task(Sensing, Directed):
  """Batch of environments of one task.

  A task sets `robot`, defines `reward` and `observe`, and overrides other methods as needed. Each method
  handles all environments at once: tensors are [num_envs, ...], their shapes are static, and the host never
  reads them. The state is in `self.sim` and in buffers; both are written in place.
  """

  robot: Path | str  # MJCF file or text
  vary: tuple[str, ...] = ()  # model fields that differ between environments, see physics/vary/variable.py
  # Derived quantities to compute, optionally with a reduction over the step: last, mean, max; None: defaults.
  outputs: Sequence[str] | Mapping[str, str] | None = None
  unsupported: Literal["error", "warn"] = "error"  # what the engine lacks: an error, or left out of the model
  moving_capacity: int | None = None  # most contacts between moving bodies; None: see Simulation
  choices: tuple[int, ...] = ()  # number of choices of each discrete action; empty: continuous in [-1, 1]
  image_ranges: Mapping[str, tuple[float, float]] = MappingProxyType({})  # of images that are not uint8
  style_reference: Tensor | None = None  # pairs of states [n, 2, width] of the group style; `setup` sets it

  def __init_subclass__(cls) -> None:
    """Raise TaskError if the base cannot call the methods of a task."""
    validation.check_class(cls, Task)

  @reports_task_errors
  def __init__(
    self,
    config: Config,
    num_envs: int,
    device: torch.device | str = "cpu",
    *,
    random: RandomSource,
    training: bool = True,
    simulation: Any = None,
  ) -> None:
    """Build `num_envs` environments; in training, their first episodes have random lengths.

    `simulation` has the interface of `physics.Simulation`; None creates one, with as many threads as torch.
    Raises TaskError with a one-line message at a mistake in the task file.
    """
    validation.check_complete(type(self), Task, config)
    self.config, self.num_envs, self.device = config, num_envs, torch.device(device)
    self.random, self.training = random, training
    self.sim: physics.Simulation = simulation or physics.Simulation(
      self.make_model(config), num_envs, device, torch.get_num_threads(), self.outputs, self.moving_capacity
    )
    self.model: physics.Model = self.sim.model
    self.left_out: tuple[str, ...] = self.model.left_out  # of the robot file
    self._substep_runner = SubstepRunner(self.sim, self.outputs)
    self.num_actions = validation.count_actions(self.action_names())
    self.max_episode_steps = self.least_between_truncations = config.episode_steps
    self.dt: float = config.substeps * self.model.timestep  # duration of a control step [s]
    self.begin_part: Callable[[str], None] = lambda _part: None  # called where a timed part begins
    self.levels_held = False  # lasting buffers keep their values, as where a checkpoint is evaluated
    self._made, self._made_to_last = list[Tensor](), list[Tensor]()
    self.events: dict[str, Event] = {}
    self.cameras: list[TaskCamera] = []
    kind = torch.int64 if self.choices else torch.float32
    self.action = self.buffer(self.num_actions, dtype=kind)  # current action: in [-1, 1], or choices
    self.episode_steps = self.buffer(dtype=torch.int64)  # control steps since the start of the episode
    self._overflow, self._nonfinite = torch.zeros(2, dtype=torch.int64, device=self.device).unbind()
    self._validated = simulation is not None  # only its owner steps a simulation that is passed in
    kept = config.keep_states if training else 0
    self._state_history = StateHistory(self.sim, num_envs, kept) if kept else None
    self._set_up()

  @classmethod
  def make_model(cls, config: Any) -> physics.Model:
    """Return the model of `scene(config)`."""
    return physics.load_model(cls.scene(config), vary=cls.vary, unsupported=cls.unsupported)

  # ---- methods that a task overrides ----

  @classmethod
  def scene(cls, config: Any) -> Any:  # noqa: ARG003
    """Return the world: MJCF file or text, or an MjSpec; the default is `robot`, whatever the settings."""
    return cls.robot

  def action_names(self) -> Sequence[str]:
    """Return a name for each action; the defaults are the actuator of each control, or numbered choices."""
    if self.choices:
      return [f"choice {index}" for index in range(len(self.choices))]
    return np.repeat(self.model.actuator_names, self.model.actuator_ctrlnum).tolist()

  def setup(self) -> None:
    """Look up names, create constants and buffers."""

  def initial_state(self) -> dict[str, Tensor]:
    """Return start values [num_envs, ...] of an episode by name, for all environments.

    Names are `qpos`, `qvel`, `act`, `mocap_pos`, `mocap_quat`, buffers and fields of `vary`. The base applies
    the values only where an episode ended. Other state starts at the model's default and other buffers at
    zero; other varied fields and lasting buffers keep their values. The final state can still be read here.
    """
    return {}

  def control(self) -> None:
    """Write `sim.ctrl` [num_envs, nu] from `action`; by default, map actions onto the control ranges."""
    offset, scale = self._control_range
    self.sim.ctrl.copy_(torch.addcmul(offset, scale, self.action.to(torch.float32)))

  def simulate(self) -> None:
    """Simulate one control step; the default holds the controls constant."""
    self.advance(self.config.substeps)

  def update(self) -> None:
    """Update the buffers of the task; called once per step, after the physics."""

  def reward(self) -> dict[str, Tensor]:
    """Return the unweighted reward terms [num_envs] by name."""
    raise NotImplementedError

  def terminated(self) -> Tensor:
    """Return where the episode ends by failure or success [num_envs] bool; the base adds the time limit."""
    return torch.zeros(self.num_envs, dtype=torch.bool, device=self.device)

  def success(self) -> Tensor | None:
    """Return where an episode that ends now is a success [num_envs] bool; None: success is not defined."""
    return None

  def observe(self) -> dict[str, dict[str, Tensor]]:
    """Return blocks [num_envs, ...] by name for each group of validation.GROUPS; change no tensor."""
    raise NotImplementedError

  def metrics(self) -> dict[str, Tensor]:
    """Return further quantities [num_envs] to log, by name."""
    return {}

  def symmetry(self) -> Mapping[str, Reflection]:
    """Return mirror images of `action` and all blocks of `policy` by name, see Reflection; empty: none."""
    return {}

  # ---- methods for setup and simulate ----

  def buffer(self, *shape: int, dtype: torch.dtype = torch.float32, lasting: bool = False) -> Tensor:
    """Return zeros [num_envs, *shape] to keep as an attribute and write in place.

    A buffer is set to zero where an episode ends, unless it is `lasting` or `initial_state` returns it.
    Checkpoints include all buffers.
    """
    if hasattr(self, "_buffers"):
      raise TaskError("buffer() allocates permanent memory: call it in setup()")
    self._made.append(torch.zeros(*shape, self.num_envs, dtype=dtype, device=self.device).movedim(-1, 0))
    if lasting:
      self._made_to_last.append(self._made[-1])
    return self._made[-1]

  def every(self, low: float, high: float, act: Callable[[], dict[str, Tensor]]) -> None:
    """Call `act` for each environment at random intervals from [low, high) s.

    `act` returns new values [num_envs, ...] by name, as `initial_state` does. The base applies them where the
    event is due, after the rewards of the step and before its observation. Where they change the simulation's
    state, derived quantities and images follow; what `update` wrote does not.
    """
    name = act.__name__
    if name in self.events:
      raise ValueError(f"there are two events '{name}': give each a name of its own")
    if not 0 < low <= high:
      raise ValueError(f"event '{name}' happens every {low:g} to {high:g} s: write 0 < low <= high")
    left = torch.zeros(self.num_envs, device=self.device)
    self.events[name] = Event(act, (low, high), self.random.uniform, left)

  def advance(self, substeps: int, ctrl: Tensor | None = None) -> None:
    """Take physics steps with `ctrl` [num_envs, substeps, nu] or `sim.ctrl`; several calls make a step."""
    self._substep_runner.advance(substeps, ctrl)

  # ---- methods for a trainer ----

  @reports_task_errors
  def reset(self) -> TensorDict:
    """Start a new episode in every environment; return observation groups and images by name."""
    everywhere = torch.ones(self.num_envs, dtype=torch.bool, device=self.device)
    if not self._validated:
      self._validate(everywhere)
    self._advance()
    self._reset(everywhere, everywhere)
    if self.training:
      self.episode_steps.copy_(self.random.uniform("phase", ()) * self.max_episode_steps)
    return TensorDict(self.observations.restart(self.observe(), everywhere), batch_size=[self.num_envs])

  @reports_task_errors
  def step(self, action: Tensor) -> TensorDict:
    """Apply `action` [num_envs, num_actions] for one control step; reset the environments that end.

    Continuous actions are clipped to [-1, 1]; actions of a task with `choices` are int64 indices. The result
    has batch size [num_envs] and holds obs and final_obs, groups [num_envs, width] and images; reward,
    terminated, truncated and valid [num_envs]; reward_terms and metrics [num_envs] by name. A task that
    defines it adds success [num_envs]: whether the episode that ends with this step succeeded. Where `valid`
    is false the simulation diverged: there, reward is zero and final_obs is the obs after the reset.
    """
    self._advance()
    self.action.copy_(action if self.choices else action.clamp(-1.0, 1.0))
    self.control()
    self.begin_part("physics")
    self._substep_runner.begin()
    self.simulate()
    self._overflow += self._substep_runner.dropped()  # before a `forward`, which counts its own
    self.begin_part("task")
    self.episode_steps += 1
    self.look(self.episode_steps)
    self.update()
    names, terms = weighted(self.reward_weights, self.reward(), self.episode_steps)
    reward = terms.sum(0)
    terminated, success, metrics = self.terminated(), self.success(), self.metrics()
    validation.check_outcome(terminated, success, metrics, self.episode_steps)
    metrics = {name: value.to(torch.float32, copy=True) for name, value in metrics.items()}
    self._happen()
    final_obs = self.observations.push(self.observe())
    valid = self._finite(reward, final_obs)
    terminated = terminated & valid
    truncated = (self.episode_steps >= self.max_episode_steps) & ~terminated & valid
    ended = terminated | truncated
    if self._state_history:
      self._state_history.add(reward, valid, ended)
    outcome = {} if success is None else {"success": success & ended}
    self._reset(ended | ~valid, valid)
    obs = self.observations.restart(self.observe(), ended | ~valid)
    result = {
      "obs": obs,
      "final_obs": {name: torch.where(like(valid, own), own, obs[name]) for name, own in final_obs.items()},
      "reward": reward.where(valid, 0.0),
      "terminated": terminated,
      "truncated": truncated,
      "valid": valid,
      "reward_terms": dict(zip(names, terms.where(valid, 0.0).unbind(0), strict=True)),
      "metrics": {name: value.where(valid, 0.0) for name, value in metrics.items()},
      **outcome,
    }
    return TensorDict(result, batch_size=[self.num_envs])

  def counters(self) -> dict[str, Tensor]:
    """Return counts [] since the start, on the device: dropped contacts and diverged transitions."""
    return {"overflow": self._overflow, "nonfinite": self._nonfinite}

  def diverged(self) -> TensorDict:
    """Return the last states [n, ...] of n newly diverged environments, see StateHistory.take."""
    return self._state_history.take() if self._state_history else TensorDict(batch_size=[0])

  def state_dict(self) -> dict[str, Any]:
    """Return the complete state of the environments: simulation, buffers, counters and random numbers."""
    return {
      "simulation": self.sim.get_state().clone(),
      "memory": {name: memory.clone() for name, memory in self._memory().items()},
      "counters": {name: count.clone() for name, count in self.counters().items()},
      "random": self.random.state_dict(),
    }

  def load_state_dict(self, state: dict[str, Any]) -> None:
    """Restore a `state_dict` of the same task with the same number of environments, bit by bit."""
    self.sim.set_state(state["simulation"])
    for name, memory in self._memory().items():
      memory.copy_(state["memory"].get(name, memory))  # what older checkpoints lack stays as set up
    for name, count in self.counters().items():
      count.copy_(state["counters"][name])
    self.random.load_state_dict(state["random"])
    if self._state_history:
      self._state_history.restart()

  # ---- internals ----

  def _set_up(self) -> None:
    """Call `setup`, then find the names and widths of rewards and observations."""
    views = dict(vars(self.sim))
    self.setup()
    validation.check_views("self.sim", self.sim, views)
    self._buffers, self.lasting = names_of(self, self._made), names_of(self, self._made_to_last)
    mocap = ("mocap_pos", "mocap_quat") if self.model.nmocap else ()
    names = ("qpos", "qvel", "act", *mocap, *self.model.varied)
    self._targets = {name: getattr(self.sim, name) for name in names} | self._buffers  # of candidates
    self.reward_weights = weigh(self.config, self.reward(), self.episode_steps)
    validation.check_blocks(blocks := self.observe(), self.episode_steps)
    self.check_sensors()
    seen = Observations(blocks, self.config, self.hidden, self.image_ranges, noisy=self.training)
    self.observations, self.obs_dims, self.obs_names, self.images = seen, seen.dims, seen.names, seen.images
    self.stacks = seen.stacks  # number of frames in each image
    validation.check_style(self.style_reference, blocks)
    validation.check_symmetry(symmetry := self.symmetry(), self.choices, self.images)
    mirror = self.observations.mirror(symmetry, self.num_actions) if symmetry else None
    self.mirror: Mapping[str, tuple[Tensor, Tensor]] | None = mirror

  def _memory(self) -> dict[str, Tensor]:
    """Return the tensors kept from step to step outside the state of the simulation, by name."""
    events = {f"left until {name}": event.left for name, event in self.events.items()}
    outputs = physics.default_outputs(self.model) if self.outputs is None else self.outputs
    derived = {f"derived {name}": getattr(self.sim, name) for name in outputs}  # control may read them
    images = {name: image for camera in self.cameras for name, image in camera.memory.items()}
    return {**self._buffers, **events, **derived, **images, **self.observations.memory}

  def _advance(self) -> None:
    """Begin a step: advance the random numbers and draw the noise."""
    self.random.advance()
    self.observations.draw(self.random.uniform)

  def _validate(self, everywhere: Tensor) -> None:
    """Take a trial step and undo it; raise TaskError at a mistake in the task file."""
    before = self.state_dict()
    self._advance()
    self._reset(everywhere, everywhere)
    validation.check_step(self, DIVERGED)
    self.load_state_dict(before)
    self._validated = True

  def _finite(self, reward: Tensor, obs: dict[str, Tensor]) -> Tensor:
    """Return where the transition is finite and below DIVERGED [num_envs] bool; count the others."""
    groups = (obs[group] for group in self.observations.widths)
    parts = [reward.unsqueeze(1), self.sim.qpos, self.sim.qvel, *groups]
    sums = [part.abs().sum(1) for part in parts]
    small = torch.stack(sums).sum(0) < DIVERGED  # nan compares as false
    valid = self.observations.finite_images(obs, small)
    self._nonfinite += (~valid).sum()
    return valid

  def _reset(self, ended: Tensor, valid: Tensor) -> None:
    """Start a new episode where `ended` [num_envs]; lasting buffers change only where it is also `valid`."""
    learns = ended & valid & (not self.levels_held)
    # Start values are selected before anything is written: they can be views of what the reset changes.
    starts = {
      name: self._choose("initial_state", name, candidate, learns if name in self.lasting else ended)
      for name, candidate in validation.by_name("initial_state()", self.initial_state()).items()
    }
    self.sim.reset(ended)
    validation.check_views("self", self, self._buffers)
    for name, buffer in self._buffers.items():
      if name not in starts and name not in self.lasting:
        buffer.masked_fill_(like(ended, buffer), 0)
    for name, start in starts.items():
      self._targets[name].copy_(start)
    for event in self.events.values():
      event.restart(ended)
    self.begin_part("physics")
    self.sim.forward(ended)
    self.look_again(ended)
    self.begin_part("task")

  def _happen(self) -> None:
    """Apply the events that are due; derived quantities follow where they change the simulation's state."""
    moved: list[Tensor] = []  # by which events, [num_envs] each
    for name, event in self.events.items():
      due = event.due(self.dt)
      changes = {key: self._choose(name, key, value, due) for key, value in event.candidates().items()}
      for key, change in changes.items():
        self._targets[key].copy_(change)
      moved += [due] if changes.keys() - self._buffers.keys() else []
    if moved:
      self.begin_part("physics")
      self.correct(torch.stack(moved).any(0), self.episode_steps)
      self.begin_part("task")

  def _choose(self, source: str, name: str, candidate: Tensor, where: Tensor) -> Tensor:
    """Return `candidate` [num_envs, ...] where `where` [num_envs] is true, otherwise the current values."""
    if name not in self._targets:
      raise TaskError(f"{source}() names '{name}', {hint(name, self._targets)}")
    target = self._targets[name]
    validation.check_tensor(f"{source}() '{name}'", candidate, target)
    return torch.where(like(where, target), candidate.to(target.dtype), target)

  @functools.cached_property
  def _control_range(self) -> Tensor:
    """Offsets and scale factors [2, nu] from actions to controls."""
    return self.constant(control_range(self.model, self.num_actions, self.choices))
