"""The distance of the tasks gym/* from Gymnasium's environments: `python -m benchmarks gym_parity`.

Both take one control step from the same states of random play, contacts included, with the same controls.
Gymnasium's environment runs its model with the Newton solver, to which all others converge; what the solver
of a file that names another one leaves unfinished is told beside it. Numbers are compared one by one; where
they differ by more than ALLOWED, what float32 leaves of the state moves Gymnasium's own answer about as far:
a small component of a large force or velocity is a difference of large numbers.
"""

import copy
import dataclasses
from typing import Any

import gymnasium
import mujoco
import numpy as np
import torch
from numpy.typing import NDArray
from tensordict import TensorDict

import tasks
from benchmarks.report import line
from gpurobot.learn.random import Random
from physics.parity import States
from physics.parity.reference import perturbed, perturbed_states
from tasks import base

Floats = NDArray[np.float64]
NEWTON = mujoco.mjtSolver.mjSOL_NEWTON
NAMES = tuple(name for name in tasks.available() if name.startswith("gym/"))
NUM_ENVS, VISITS, BETWEEN = 50, 20, 5  # environments, states of each, control steps between two states
ALLOWED = 1e-4  # error relative to the larger of 1 and the number itself
DRAWS = 32  # of what rounding may be


@dataclasses.dataclass(frozen=True)
class Answers:
  """What steps show, one per row."""

  blocks: dict[str, Floats]  # of the observation, by name, and the reward [num_states, width]
  terminated: NDArray[np.bool_]  # [num_states]


def make_task(name: str, num_envs: int = NUM_ENVS) -> base.Task:
  """Return a task as it is evaluated."""
  module = tasks.load(name)
  return module.Task(module.Config(), num_envs, random=Random(0, num_envs), training=False)


def make_env(name: str) -> Any:
  """Return Gymnasium's environment of a task, without its time limit."""
  env = gymnasium.make(name.removeprefix("gym/")).unwrapped
  env.reset(seed=0)
  return env


def newton(model: mujoco.MjModel) -> mujoco.MjModel:
  """Return the model with the Newton solver."""
  model = copy.copy(model)
  model.opt.solver = NEWTON
  return model


def controls(task: base.Task, actions: torch.Tensor) -> Floats:
  """Return the controls [..., nu], which are Gymnasium's actions."""
  low, high = task.model.actuator_ctrlrange.astype(np.float32).T
  return ((low + high) / 2 + (high - low) / 2 * actions.numpy()).astype(np.float64)


def visit(task: base.Task) -> tuple[States, Answers]:
  """Play at random from resets on; return states on the way and what the task made of each."""
  task.reset()
  generator = torch.Generator().manual_seed(0)
  states, answers = [], []
  for _ in range(VISITS):
    actions = 2 * torch.rand(BETWEEN + 1, task.num_envs, task.num_actions, generator=generator) - 1
    for action in actions[:-1]:
      task.step(action)
    task.sim.forward()  # derived fields are then what Gymnasium's are when it is set to a state
    state = {name: getattr(task.sim, name).double().numpy() for name in ("qpos", "qvel", "qacc_warmstart")}
    states.append({**state, "ctrl": controls(task, actions[-1])})
    step = task.step(actions[-1])
    answers.append((seen(step), step["terminated"].numpy()))
  shown, terminated = (np.concatenate(parts) for parts in zip(*answers, strict=True))
  collected = States(**{name: np.concatenate([state[name] for state in states]) for name in states[0]})
  return collected, Answers(split(task, shown), terminated)


def seen(step: TensorDict) -> Floats:
  """Return observation and reward of a step side by side [num_envs, width]."""
  return torch.cat([step["final_obs", "policy"], step["reward"].unsqueeze(1)], dim=1).double().numpy()


def split(task: base.Task, shown: Floats) -> dict[str, Floats]:
  """Return observation and reward side by side [num_states, width] as the task's blocks, by name."""
  widths = {**task.observations.widths["policy"], "reward": 1}
  parts = np.split(shown, np.cumsum([*widths.values()])[:-1], axis=1)
  return dict(zip(widths, parts, strict=True))


def ask(task: base.Task, env: Any, model: mujoco.MjModel, states: States) -> Answers:
  """Return what Gymnasium's environment, running a model like its own, makes of the states."""
  own, env.model = env.model, model
  shown, terminated = [], []
  for row in range(len(states)):
    env.set_state(states.qpos[row], states.qvel[row])
    states.load(row, env.data)
    obs, reward, ended, *_ = env.step(states.ctrl[row])
    shown.append([*obs, reward])
    terminated.append(ended)
  env.model = own
  return Answers(split(task, np.array(shown)), np.array(terminated))


def error(found: Answers, expected: Answers) -> Floats:
  """Return the largest error [num_states] of any number, relative to the larger of 1 and its size."""
  errors = [
    (np.abs(found.blocks[name] - values) / np.maximum(1.0, np.abs(values))).max(axis=1)
    for name, values in expected.blocks.items()
  ]
  return np.max(errors, axis=0)


def rounding(task: base.Task, env: Any, states: States) -> Floats:
  """Return how far one float32 unit in states and constants moves Gymnasium's own answers [num_states]."""
  random = np.random.default_rng(0)
  expected = ask(task, env, newton(env.model), states)
  moved = [
    ask(task, env, perturbed(newton(env.model), random), perturbed_states(task.model, states, random))
    for _ in range(DRAWS)
  ]
  return np.max([error(found, expected) for found in moved], axis=0)


def run() -> None:
  """Report each task's median and largest error, the gap to its file's solver, and what float32 excuses."""
  for name in NAMES:
    task, env = make_task(name), make_env(name)
    states, found = visit(task)
    expected = ask(task, env, newton(env.model), states)
    figures = {"error": error(found, expected)}
    if env.model.opt.solver != NEWTON:
      figures["solver_gap"] = error(ask(task, env, env.model, states), expected)
    for figure, values in figures.items():
      line(f"{name}.{figure}.median", float(np.median(values)))
      line(f"{name}.{figure}.largest", float(values.max()))
    hardest = figures["error"] > ALLOWED
    line(f"{name}.over_{ALLOWED:g}", int(hardest.sum()))
    if hardest.any():
      excess = figures["error"][hardest] / rounding(task, env, states[hardest])
      line(f"{name}.largest_beside_rounding", float(excess.max()))
