"""Parity of the tasks gym/* with Gymnasium's environments: `python -m benchmarks parity.gym_tasks`.

Both take one control step from the same states, collected with random actions, and with the same controls.
Gymnasium's environment uses the Newton solver, to which all solvers converge. All numbers are compared one by
one. Where they differ by more than ALLOWED, rounding to float32 in every time step changes Gymnasium's own
result about as much: a small component of a large force or velocity is a difference of large numbers.
"""

import contextlib
import copy
import dataclasses
from collections.abc import Iterator
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
Blocks = dict[str, Floats]  # of the observation, and the reward, by name [num_states, width]
NEWTON = mujoco.mjtSolver.mjSOL_NEWTON
NAMES = tuple(name for name in tasks.available() if name.startswith("gym/"))
NUM_ENVS, ROUNDS, BETWEEN = 50, 20, 5  # environments, states per environment, control steps between states
ALLOWED = 1e-4  # error relative to the larger of 1 and the number itself
DRAWS = 16  # random perturbations that estimate the effect of rounding: 8 missed it in one state of Humanoid


@dataclasses.dataclass(frozen=True)
class Results:
  """Results of one step from each of several states."""

  blocks: Blocks
  terminated: NDArray[np.bool_]  # [num_states]


def make_task(name: str, num_envs: int = NUM_ENVS) -> base.Task:
  """Return a task in evaluation mode."""
  module = tasks.load(name)
  return module.Task(module.Config(), num_envs, random=Random(0, num_envs), training=False)


def make_env(name: str) -> Any:
  """Return the Gymnasium environment of a task, without its time limit."""
  env = gymnasium.make(name.removeprefix("gym/")).unwrapped
  env.reset(seed=0)
  return env


def newton(model: mujoco.MjModel) -> mujoco.MjModel:
  """Return a copy of the model that uses the Newton solver."""
  model = copy.copy(model)
  model.opt.solver = NEWTON
  return model


def controls(task: base.Task, actions: torch.Tensor) -> Floats:
  """Return the controls [..., nu] of actions [..., nu]; Gymnasium's actions are controls."""
  low, high = task.model.actuator_ctrlrange.astype(np.float32).T
  return ((low + high) / 2 + (high - low) / 2 * actions.numpy()).astype(np.float64)


def collect(task: base.Task) -> tuple[States, Results]:
  """Take random actions from resets on; return visited states and the results of the task from each."""
  task.reset()
  generator = torch.Generator().manual_seed(0)
  states, results = [], []
  for _ in range(ROUNDS):
    actions = 2 * torch.rand(BETWEEN + 1, task.num_envs, task.num_actions, generator=generator) - 1
    for action in actions[:-1]:
      task.step(action)
    task.sim.forward()  # updates derived fields, as Gymnasium does when it sets a state
    state = {name: getattr(task.sim, name).double().numpy() for name in ("qpos", "qvel", "qacc_warmstart")}
    states.append({**state, "ctrl": controls(task, actions[-1])})
    step = task.step(actions[-1])
    results.append((flat_results(step), step["terminated"].numpy()))
  shown, terminated = (np.concatenate(parts) for parts in zip(*results, strict=True))
  collected = States(**{name: np.concatenate([state[name] for state in states]) for name in states[0]})
  return collected, Results(split(task, shown), terminated)


def flat_results(step: TensorDict) -> Floats:
  """Return the observation and the reward of a step, concatenated [num_envs, width]."""
  return torch.cat([step["final_obs", "policy"], step["reward"].unsqueeze(1)], dim=1).double().numpy()


def split(task: base.Task, shown: Floats) -> Blocks:
  """Return the blocks [num_states, n] by name, from concatenated numbers [num_states, width]."""
  widths = {**task.observations.widths["policy"], "reward": 1}
  parts = np.split(shown, np.cumsum([*widths.values()])[:-1], axis=1)
  return dict(zip(widths, parts, strict=True))


def step_gymnasium(task: base.Task, env: Any, model: mujoco.MjModel, states: States) -> Results:
  """Return the results of Gymnasium's environment, with `model` in place of its own, from the states."""
  own, env.model = env.model, model
  shown, terminated = [], []
  for row in range(len(states)):
    env.set_state(states.qpos[row], states.qvel[row])
    states.load(row, env.data)
    obs, reward, ended, *_ = env.step(states.ctrl[row])
    shown.append([*obs, reward])
    terminated.append(ended)
  env.model = own
  return Results(split(task, np.array(shown)), np.array(terminated))


def errors(found: Blocks, expected: Blocks) -> Floats:
  """Return the largest error per state [num_states], relative to the larger of 1 and the number."""
  relative = [
    (np.abs(found[name] - values) / np.maximum(1.0, np.abs(values))).max(axis=1)
    for name, values in expected.items()
  ]
  return np.max(relative, axis=0)


def rounding(task: base.Task, env: Any, states: States) -> Floats:
  """Return the change of Gymnasium's results [num_states] by float32 rounding in every time step."""
  random, model = np.random.default_rng(0), newton(env.model)
  expected = step_gymnasium(task, env, model, states)
  with rounded_steps(task, env, random):
    moved = [
      step_gymnasium(task, env, model, perturbed_states(task.model, states, random)) for _ in range(DRAWS)
    ]
  return np.max([errors(found.blocks, expected.blocks) for found in moved], axis=0)


@contextlib.contextmanager
def rounded_steps(task: base.Task, env: Any, random: np.random.Generator) -> Iterator[None]:
  """Make Gymnasium's environment round constants before each of its time steps and the state after it."""
  exact, data = env.do_simulation, env.data

  def simulate(ctrl: Floats, frames: int) -> None:
    model = env.model
    for _ in range(frames):
      env.model = perturbed(model, random)
      exact(ctrl, 1)
      state = {name: getattr(data, name)[None] for name in ("qpos", "qvel", "ctrl")}
      perturbed_states(task.model, States(**state), random).load(0, data)
    env.model = model

  env.do_simulation = simulate
  yield
  env.do_simulation = exact


def run() -> None:
  """Print errors of each task, and errors relative to rounding."""
  for name in NAMES:
    task, env = make_task(name), make_env(name)
    states, found = collect(task)
    expected = step_gymnasium(task, env, newton(env.model), states)
    error = errors(found.blocks, expected.blocks)
    line(f"{name}.error.median", float(np.median(error)))
    line(f"{name}.error.largest", float(error.max()))
    hardest = error > ALLOWED
    line(f"{name}.over_{ALLOWED:g}", int(hardest.sum()))
    if hardest.any():
      excess = error[hardest] / rounding(task, env, states[hardest])
      line(f"{name}.largest_beside_rounding", float(excess.max()))
