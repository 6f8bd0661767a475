"""A policy at play: it acts step by step, while a person pushes, commands and exchanges it."""

import math
from pathlib import Path

import torch
from torch import Tensor

from gpurobot.config import ConfigError
from gpurobot.deploy import trained
from gpurobot.deploy.policy import Policy
from gpurobot.run import checkpoint
from gpurobot.run.video_recorder import FOLDER as VIDEOS
from gpurobot.viewer.stage import find_robot, task_of

COMMANDS = ("forward", "sideways", "turn")  # what a velocity command says, in the order of its numbers


class Player:
  """A policy, its environments, and the one of them that is looked at."""

  def __init__(self, found: trained.Trained) -> None:
    """Start every episode anew."""
    self.task, self.policy, self.config = task_of(found), found.policy, found.config
    self.robot = find_robot(self.task.model.mj)
    self.index = 0  # of the environment that is looked at
    self.command: list[float] | None = None  # what it is told instead of what the task draws
    self.terms: dict[str, float] = {}  # parts of its last reward, weighted
    self.ranges = _ranges(self.task.config)  # of the velocities that the task commands, none: it does not
    self.restart()

  def restart(self) -> None:
    """Start every episode anew."""
    self.time, self.episode_return, self.episode_steps = 0.0, 0.0, 0  # [s]; of the one looked at
    self._obs = self.task.reset()
    self._ended = torch.ones(self.task.num_envs, dtype=torch.bool, device=self.task.device)

  def look_at(self, index: int) -> None:
    """Turn to another environment."""
    if index != self.index:
      self.index, self.episode_return, self.episode_steps = index, 0.0, 0

  @torch.no_grad()
  def step(self) -> None:
    """Act once in every environment."""
    task, index = self.task, self.index
    if self.command is not None:
      task.command[index] = task.constant(self.command)  # type: ignore[attr-defined]
    if self._ended[index]:
      self.episode_return, self.episode_steps = 0.0, 0
    result = task.step(self.policy(self._obs, self._ended))
    self._obs = result["obs"]
    self._ended = result["terminated"] | result["truncated"] | ~result["valid"]
    self.terms = {name: float(term[index]) for name, term in result["reward_terms"].items()}
    self.episode_return += float(result["reward"][index])
    self.episode_steps += 1
    self.time += task.dt

  def push(self, speed: float, direction: float) -> None:
    """Change the velocity of the robot that is looked at: by `speed` [m/s] towards `direction` [rad].

    A robot that is held somewhere gets it at its first joint [m/s or rad/s].
    """
    qvel, dof = self.task.sim.qvel[self.index], self.robot.dof
    if self.robot.free:
      qvel[dof : dof + 2] += self.task.constant([math.cos(direction), math.sin(direction)]) * speed
    else:
      qvel[dof] += speed

  def observations(self) -> dict[str, Tensor]:
    """Return what the policy of the environment that is looked at sees, by name, without noise: [n] each."""
    blocks = self.task.observe()["policy"]
    return {name: block[self.index].float().reshape(-1) for name, block in blocks.items()}

  def load(self, source: str) -> None:
    """Go on with the policy of another checkpoint of the same task; raise ConfigError where it is not."""
    config, saved = trained.read(source, str(self.task.device))
    if config.task != self.config.task:
      raise ConfigError(f"'{source}' is of task '{config.task}', not of '{self.config.task}'")
    self.policy = Policy(saved["learner"], config.ppo, self.task.num_envs, self.task.device)
    self._ended.fill_(True)  # the memory of the old policy means nothing to the new one


def _ranges(config: object) -> dict[str, float]:
  """Return how much of each velocity a task commands at most, or nothing where it commands none."""
  found = {name: getattr(config, f"command_{name}", None) for name in COMMANDS}
  return {} if None in found.values() else {name: float(most or 0.0) for name, most in found.items()}


def checkpoints(source: str) -> list[str]:
  """Return the checkpoints of the run that `source` is of, it first: the newest, and those with a video."""
  path = Path(source)
  run = path if path.is_dir() else path.parent
  run = run.parent if run.name == VIDEOS else run
  newest = [run] if checkpoint.exists(run) else []
  found = [run if path.name == checkpoint.NAME else path, *newest, *sorted((run / VIDEOS).glob("*.pt"))]
  return list(dict.fromkeys(map(str, found)))
