"""Parity of the tasks dm/* with dm_control: `python -m benchmarks parity.dm_tasks`.

Both take one control step from the same states, collected with random actions, and with the same controls.
All numbers are compared one by one, as in `gym_parity`.
"""

from collections.abc import Sequence
from typing import Any

import mujoco
import numpy as np
import torch

import tasks
from benchmarks.parity.gym_tasks import ALLOWED, Blocks, Floats, controls, errors, flat_results, split
from benchmarks.report import line
from gpurobot.learn.random import Random
from physics.engines import MujocoSimulation
from tasks import base
from tasks.dm import TASKS

NAMES = tuple(f"dm/{domain}_{task}" for domain, parts in TASKS.items() for task in parts)
STARTS = 64  # start states, where they are drawn in advance
NUM_ENVS, ROUNDS, BETWEEN = 10, 10, 10  # environments, states per environment, control steps between states


def make_task(
  name: str, num_envs: int = NUM_ENVS, *, in_mujoco: bool = False, starts: int = STARTS
) -> base.Task:
  """Return a task in evaluation mode, in our engine or in MuJoCo C, with `starts` start states."""
  module = tasks.load(name)
  config, random, simulation = module.Config(), Random(0, num_envs), None
  if hasattr(config, "starts"):
    config.starts = starts
  if in_mujoco:
    simulation = MujocoSimulation(module.Task.make_model(config), num_envs, module.Task.outputs)
  return module.Task(config, num_envs, random=random, training=False, simulation=simulation)


class Suite:
  """An unmodified environment of dm_control, stepped from the states of a task's environments."""

  def __init__(self, name: str) -> None:
    """Load the environment of a task such as dm/walker_run."""
    from dm_control import suite  # noqa: PLC0415 (after the next line)

    domain, part = next(
      (domain, part) for domain, parts in TASKS.items() for part in parts if name == f"dm/{domain}_{part}"
    )
    self.env = suite.load(domain, part, {"random": 0})
    self.env.reset()

  @property
  def step_limit(self) -> float:
    """Number of control steps of an episode."""
    return self.env._step_limit

  def set_state(self, task: base.Task, index: int) -> None:
    """Take over the state of one environment of a task, and its variations between episodes."""
    model, data, sim = self.env.physics.model.ptr, self.env.physics.data.ptr, task.sim
    for name in ("qpos", "qvel", "act", "qacc_warmstart"):
      getattr(data, name)[:] = getattr(sim, name)[index]
    for body, mocap in zip(task.model.body_names, task.model.body_mocapid, strict=True):
      if mocap >= 0:
        self._move(body, sim.mocap_pos[index, mocap].numpy(), sim.mocap_quat[index, mocap].numpy())
    if "jnt_stiffness" in task.model.varied:
      model.jnt_stiffness[:] = sim.jnt_stiffness[index]
    if hasattr(task, "directions"):
      model.wrap_prm[:] = task.directions[index].flatten()

  def _move(self, name: str, place: Floats, turn: Floats) -> None:
    """Move the body, geom or site of this name, which stands in the world."""
    model = self.env.physics.model.ptr
    for kind in ("body", "geom", "site"):
      found = mujoco.mj_name2id(model, getattr(mujoco.mjtObj, f"mjOBJ_{kind.upper()}"), name)
      if found >= 0:
        getattr(model, f"{kind}_pos")[found] = place
        if kind == "body":
          model.body_quat[found] = turn
        return

  def start(self) -> Floats:
    """Return the first observation of an episode that begins in the state."""
    self.env.physics.after_reset()
    return flat(self.env.task.get_observation(self.env.physics))

  def step(self, ctrl: Floats) -> Floats:
    """Return the observation and the reward of a control step from the state."""
    self.env.physics.forward()
    self.env._reset_next_step = False
    result = self.env.step(ctrl)
    return np.append(flat(result.observation), result.reward)


def flat(observation: dict[str, Any]) -> Floats:
  """Return the numbers of an observation of dm_control."""
  return np.concatenate([np.ravel(values) for values in observation.values()])


def drop_missing_arrays() -> None:
  """Remove arrays that the installed version of MuJoCo lacks from dm_control's index of them."""
  from dm_control.mujoco.wrapper.mjbindings import sizes  # noqa: PLC0415 (of the extra `dm`)

  for owner, kind in (("mjmodel", mujoco.MjModel), ("mjdata", mujoco.MjData)):
    known = sizes.array_sizes[owner]
    for name in [name for name in known if not hasattr(kind, name)]:
      del known[name]


def collect(task: base.Task, suite: Suite, rounds: int = ROUNDS) -> tuple[Blocks, Blocks]:
  """Take random actions; return the results of one step from visited states, here and in dm_control."""
  task.reset()
  generator, found = torch.Generator().manual_seed(0), list[tuple[Blocks, Blocks]]()
  for _ in range(rounds):
    actions = 2 * torch.rand(BETWEEN + 1, task.num_envs, task.num_actions, generator=generator) - 1
    for action in actions[:-1]:
      task.step(action)
    found.append(compare(task, suite, actions[-1]))
  ours, theirs = zip(*found, strict=True)
  return _joined(ours), _joined(theirs)


def compare(task: base.Task, suite: Suite, actions: torch.Tensor) -> tuple[Blocks, Blocks]:
  """Return the results of a step with actions [num_envs, num_actions], here and in dm_control."""
  task.sim.forward()  # as where dm_control takes the state over
  ctrl, theirs = applied(task, actions), []
  for index in range(task.num_envs):
    suite.set_state(task, index)
    theirs.append(suite.step(ctrl[index]))
  return split(task, flat_results(task.step(actions))), split(task, np.array(theirs))


def _joined(parts: Sequence[Blocks]) -> Blocks:
  return {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}


def applied(task: base.Task, actions: torch.Tensor) -> Floats:
  """Return the controls [num_envs, nu] that dm_control takes for actions [num_envs, nu]."""
  unlimited = not task.model.actuator_ctrllimited.all()
  return actions.double().numpy() if unlimited else controls(task, actions)


def run() -> None:
  """Print the errors of each task: in our engine, and of the task alone, with states from MuJoCo C."""
  drop_missing_arrays()
  for name in NAMES:
    suite = Suite(name)
    for engine, in_mujoco in (("mujoco", True), ("own", False)):
      error = errors(*collect(make_task(name, in_mujoco=in_mujoco), suite))
      line(f"{name}.{engine}.median", float(np.median(error)))
      line(f"{name}.{engine}.largest", float(error.max()))
    line(f"{name}.own.over_{ALLOWED:g}", int((error > ALLOWED).sum()))
