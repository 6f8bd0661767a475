"""Teacher of a distillation: a trained policy, frozen, that says how it would act in every environment."""

import hashlib
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from gpurobot.learn.agent import Agent
from gpurobot.learn.distribution import Distribution, Gaussian, MultiDiscrete, Squashed
from gpurobot.learn.env import VecEnv
from gpurobot.learn.identity import COLUMN, POLICY, check_hidden, compare, names_of
from gpurobot.settings.config import ConfigError

GROUP = "teacher"  # observations of the teachers; without this group they see the policy's


class Teacher:
  """A policy with the recurrent state of `num_envs` environments; its weights and moments never change.

  `digest` identifies it, so that a resumed student goes on with the same teachers.
  """

  def __init__(self, name: str, agent: Agent[Any], num_envs: int) -> None:
    """Take a trained agent."""
    self.name, self.agent = name, agent
    self.width, self.kind = agent.spaces.obs_dims["policy"], kind_of(agent)
    moments = agent.observations.moments
    agent.observations.moments = {"policy": moments["policy"]}  # the critic's observations are not needed
    agent.network.requires_grad_(False)
    self.state = agent.start(num_envs)[:, : agent.network.actor.state_width].clone()
    weights = {**agent.network.state_dict(), **moments["policy"].state_dict()}
    digest = hashlib.sha256()
    for tensor in weights.values():
      digest.update(tensor.cpu().contiguous().numpy().tobytes())
    self.digest = digest.hexdigest()

  @torch.no_grad()
  def __call__(self, obs: Tensor, restart: Tensor) -> Tensor:
    """Return `parameters` [n, ...] of the teacher's actions for raw observations [n, width].

    restart [n] bool: an episode starts with the step. The recurrent state advances.
    """
    policy, state = self.agent.act({"policy": obs}, self.state, restart)
    self.state.copy_(state)
    return parameters(policy).squeeze(0)


def parameters(policy: Distribution) -> Tensor:
  """Return what `distribution` needs of any policy [...]: means and log_std [..., 2 A], or logits."""
  if isinstance(policy, Gaussian):
    return torch.cat([policy.mean, policy.log_std.expand_as(policy.mean)], -1)
  return policy.parameters


def distribution(label: Tensor, kind: type[Distribution], choices: Sequence[int]) -> Distribution:
  """Return the action distribution [...] of `parameters` [..., width]."""
  return MultiDiscrete(label, choices) if choices else kind(*label.chunk(2, -1))


def label_width(env: VecEnv) -> int:
  """Return the width of `parameters`."""
  return sum(env.choices) or 2 * env.num_actions


def kind_of(agent: Agent[Any]) -> type[Distribution]:
  """Return the class of an agent's action distributions."""
  head = agent.network.head
  return type(head(next(head.parameters()).new_zeros(1, agent.network.actor.width)))


def check(
  teacher: Teacher, env: VecEnv, group: str, width: int, kind: type[Distribution], changed: bool = False
) -> None:
  """Raise ConfigError if a teacher does not fit the environments or the student.

  group, width: of the observations that the teacher would see. kind: of the student's distributions.
  """
  spaces = teacher.agent.spaces
  if spaces.images:
    raise ConfigError(f"teacher={teacher.name} observed images; take a teacher that sees numbers alone")
  own = names_of(env)
  if group == "policy":
    check_hidden(teacher.name, spaces.names, teacher.width, env)
  seen = own.get(COLUMN.format(group), spaces.names.get(POLICY))
  shown = {kind: names for kind, names in own.items() if "column" not in kind} | {POLICY: seen}
  compare(teacher.name, spaces.names, shown, changed)
  if teacher.width != width:
    raise ConfigError(
      f"teacher={teacher.name} observed {teacher.width} numbers, and the group '{group}' has {width}: take "
      "the settings of its task, and let the task show it what it saw"
    )
  then, now = (
    _actions(*own) for own in ((spaces.num_actions, spaces.choices), (env.num_actions, env.choices))
  )
  if then != now:
    raise ConfigError(f"teacher={teacher.name} has {then}, and the task {now}: take a teacher of this task")
  if teacher.kind is not kind:
    squashed = teacher.kind is Squashed
    raise ConfigError(
      f"teacher={teacher.name} {'squashes' if squashed else 'does not squash'} its actions by tanh: write "
      f"ppo.squash={str(squashed).lower()}"
    )


def _actions(count: int, choices: Sequence[int]) -> str:
  """Return the actions of a policy in words."""
  return f"discrete actions of {list(choices)} choices" if choices else f"{count} continuous actions"


def assign(env: VecEnv, count: int, first_env: int, num_envs: int) -> Tensor:
  """Return which of `count` teachers teaches each environment [local_envs] int64.

  Without a `VecEnv.teacher_index` they have equal shares: first_env is the global index of this rank's first
  environment, of num_envs.
  """
  if (index := env.teacher_index(count)) is not None:
    return index
  return (first_env + torch.arange(env.num_envs, device=env.device)) * count // num_envs


def choose(labels: Sequence[Tensor], index: Tensor) -> Tensor:
  """Return of labels [n, width], one for each teacher, the one of each environment's teacher `index` [n]."""
  chosen = labels[0]
  for number, label in enumerate(labels[1:], 1):
    chosen = torch.where((index == number).unsqueeze(1), label, chosen)
  return chosen


def check_same(saved: Sequence[str], teachers: Sequence[Teacher]) -> None:
  """Raise ValueError if the digests of a checkpoint are of other teachers."""
  for number, teacher in enumerate(teachers):
    if saved[number : number + 1] != [teacher.digest]:
      raise ValueError(f"teacher={teacher.name} is not the one that it began with; give teacher=<that one>")
  if len(saved) != len(teachers):
    raise ValueError(f"it began with {len(saved)} teachers, not {len(teachers)}")
