"""Player of a policy: steps the environments, with pushes, commands and other checkpoints."""

import math
from pathlib import Path

import torch
from torch import Tensor

import tasks
from gpurobot.deploy import trained
from gpurobot.deploy.policy import Policy
from gpurobot.run import checkpoint
from gpurobot.run.policy_images import pictures
from gpurobot.run.video_recorder import FOLDER as VIDEOS
from gpurobot.settings.config import AlgorithmName, ConfigError, algorithm_settings, policy_group, to_dict
from gpurobot.viewer.framing import find_robot
from gpurobot.viewer.offscreen import Picture
from gpurobot.viewer.task_scene import task_of


class Player:
  """A policy with its environments; one of them is selected."""

  def __init__(self, found: trained.Trained, against: str | None = None) -> None:
    """Start new episodes in all environments.

    against: checkpoint of a rival, which acts in every second environment. Raises ConfigError as `load`.
    """
    self.task, self.policy, self.config = task_of(found), found.policy, found.config
    self.against, self.rival = against, self._policy_of(against) if against else None
    self.robot = find_robot(self.task.model.mj)
    self.index = 0  # of the selected environment
    self.command: list[float] | None = None  # its command; None: the task draws it
    self.terms: dict[str, float] = {}  # weighted terms of its last reward
    self.commands = self.task.commands  # None if the task declares none
    self.restart()

  def restart(self) -> None:
    """Start new episodes in all environments."""
    self.time, self.episode_return, self.episode_steps = 0.0, 0.0, 0  # [s]; of the selected environment
    self._obs = self.task.reset()
    self._ended = torch.ones(self.task.num_envs, dtype=torch.bool, device=self.task.device)
    self._returns = torch.zeros(self.task.num_envs, device=self.task.device)  # of the present episodes
    self._scores: tuple[list[float], list[float]] = ([], [])  # returns of the ended ones, by policy

  def look_at(self, index: int) -> None:
    """Select another environment."""
    if index != self.index:
      self.index, self.episode_return, self.episode_steps = index, 0.0, 0

  @torch.no_grad()
  def step(self) -> None:
    """Take one step in every environment."""
    task, index = self.task, self.index
    if self.command is not None and self.commands:
      self.commands.values[index, : len(self.command)] = task.constant(self.command)
    if self._ended[index]:
      self.episode_return, self.episode_steps = 0.0, 0
    result = task.step(self._act())
    self._obs = result["obs"]
    self._ended = result["terminated"] | result["truncated"] | ~result["valid"]
    self._score(result["reward"])
    self.terms = {name: float(term[index]) for name, term in result["reward_terms"].items()}
    self.episode_return += float(result["reward"][index])
    self.episode_steps += 1
    self.time += task.dt

  def _act(self) -> Tensor:
    """Return the actions of the policy, and of the rival in every second environment."""
    action = self.policy(self._obs, self._ended)
    if self.rival:
      action[1::2] = self.rival(self._obs, self._ended)[1::2]
    return action

  def _score(self, reward: Tensor) -> None:
    """Add the rewards [num_envs] of a step to the returns, and store the returns of ended episodes."""
    self._returns += reward
    for side, scores in enumerate(self._scores):
      scores.extend(self._returns[side::2][self._ended[side::2]].tolist())
    self._returns.masked_fill_(self._ended, 0)

  def scores(self) -> list[tuple[float, int]]:
    """Return mean return and number of the episodes that ended since the restart, of policy and rival."""
    return [(math.fsum(scores) / max(len(scores), 1), len(scores)) for scores in self._scores]

  def push(self, speed: float, direction: float) -> None:
    """Add `speed` [m/s] in `direction` [rad] to the velocity of the robot in the selected environment.

    If the robot's base is fixed, `speed` is added to its first joint [m/s or rad/s].
    """
    qvel, dof = self.task.sim.qvel[self.index], self.robot.dof
    if self.robot.free:
      qvel[dof : dof + 2] += self.task.constant([math.cos(direction), math.sin(direction)]) * speed
    else:
      qvel[dof] += speed

  def observations(self) -> dict[str, Tensor]:
    """Return the policy's observation blocks in the selected environment by name, [n] each, without noise.

    Images are left out.
    """
    blocks, images = self.task.observe()["policy"], self.task.images
    return {name: x[self.index].float().reshape(-1) for name, x in blocks.items() if name not in images}

  def policy_images(self, index: int) -> dict[str, Picture]:
    """Return the policy's present images of an environment, pictures [height, width, 3] uint8 by name."""
    obs = {name: self._obs[name][index : index + 1] for name in self.task.images}
    return {name: shown[0].numpy() for name, shown in pictures(self.task, obs).items()}

  def load(self, source: str) -> None:
    """Continue with the policy of another checkpoint; raise ConfigError if it is of another task.

    The checkpoint is read, and nothing that it names is imported.
    """
    self.policy = self._policy_of(source)
    self._ended.fill_(True)  # resets the recurrent state, which is the old policy's

  def _policy_of(self, source: str) -> Policy:
    """Return the policy of another checkpoint for these environments."""
    saved = trained.read_policy(source, str(self.task.device))
    own, other = self.config.task, saved["config"]["task"]
    if Path(own).name != Path(other).name:
      raise ConfigError(f"'{source}' is of task '{other}', not of '{own}'")
    key = f"{policy_group(saved['config'].get('algorithm', AlgorithmName.ppo))}.network"
    network = saved["config"].get(key)
    known = algorithm_settings(self.config).network if network else None  # that the user has named
    values = saved["config"] | {key: trained.trusted_network(source, network, known)}
    given = to_dict(self.config)  # the environments stay as they are
    config = checkpoint.configure(source, values, tasks.load(own), given)
    with checkpoint.fitting(source, "its own settings"):
      trained.check_fit(source, saved["learner"], self.task, self.config.changed)
      settings = algorithm_settings(config)
      return Policy(saved["learner"], settings, self.task.num_envs, self.task.device)


def checkpoints(source: str) -> list[str]:
  """Return the checkpoints of the run of `source`: `source`, the newest, the best, then those with videos."""
  path = Path(source)
  run = path if path.is_dir() else path.parent
  run = run.parent if run.name == VIDEOS else run
  newest = [run] if checkpoint.exists(run) else []
  others = [*run.glob(checkpoint.BEST), *sorted((run / VIDEOS).glob("*.pt"))]
  found = [run if path.name == checkpoint.NAME else path, *newest, *others]
  return list(dict.fromkeys(map(str, found)))
