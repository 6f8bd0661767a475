"""A task without physics, for tests: points in a plane are pushed towards the origin.

The critic does not see the episode's age: with it, values at the time limit have no solution, see
`test_values_run_away_where_the_critic_sees_the_age_and_the_log_says_so`.
"""

import dataclasses
from typing import Any, ClassVar

import torch
from tensordict import TensorDict

from gpurobot.learn.env import VecEnv

PPO = {
  "hidden": [16, 16],
  "horizon": 8,
  "precision": "float32",
  "lr": 1e-3,
  "reference_minibatch": 256,
}
TRAIN = {"num_envs": 64}


@dataclasses.dataclass
class Config:
  """Settings of the toy."""

  episode_steps: int = dataclasses.field(default=20, metadata={"help": "steps until the time limit"})
  force: float = dataclasses.field(
    default=0.5, metadata={"help": "distance of one step at full action", "unit": "m"}
  )
  finite_below: float = dataclasses.field(
    default=9.0, metadata={"help": "x that is not finite any more", "unit": "m"}
  )


class Task(VecEnv):
  """Positions [num_envs, 2] move by the action; the reward is minus the distance from the origin."""

  num_actions = 2
  choices = ()
  mirror = style_reference = None
  obs_names: ClassVar = {}
  obs_dims: ClassVar = {"policy": 2, "critic": 3}

  def __init__(self, config, num_envs, device="cpu", *, random, training=True, simulation=None):
    assert simulation is None, "there is nothing to simulate"
    self.config, self.num_envs, self.device, self.random = config, num_envs, torch.device(device), random
    self.max_episode_steps = self.least_between_truncations = config.episode_steps
    self.position = torch.zeros(num_envs, 2, device=device)
    self.age = torch.zeros(num_envs, dtype=torch.int64, device=device)
    self.training = training
    self.begin_part = lambda _part: None

  def _observe(self) -> dict[str, torch.Tensor]:
    return {
      "policy": self.position.clone(),
      "critic": torch.cat([self.position, self.position.norm(dim=1, keepdim=True)], 1),
    }

  def _reset(self, mask: torch.Tensor) -> None:
    self.position.copy_(
      torch.where(mask[:, None], self.random.uniform("start", (2,), -1.0, 1.0), self.position)
    )
    self.age.masked_fill_(mask, 0)

  def reset(self) -> TensorDict:
    self._reset(torch.ones(self.num_envs, dtype=torch.bool, device=self.device))
    if self.training:
      self.age.copy_(self.random.uniform("phase", (), 0, self.max_episode_steps))
    return TensorDict(self._observe(), batch_size=[self.num_envs])

  def step(self, action: torch.Tensor) -> TensorDict:
    self.random.advance()
    self.age += 1
    self.position += self.config.force * action.clamp(-1, 1)
    distance = self.position.norm(dim=1)
    terminated = distance > 3
    valid = self.position[:, 0] < self.config.finite_below
    terminated &= valid
    truncated = (self.age >= self.max_episode_steps) & ~terminated & valid
    final = self._observe()
    self._reset(terminated | truncated | ~valid)
    return TensorDict(
      {
        "obs": self._observe(),
        "final_obs": final,
        "reward": torch.where(valid, -distance, torch.nan),
        "terminated": terminated,
        "truncated": truncated,
        "valid": valid,
        "reward_terms": {"distance": -distance},
        "metrics": {"speed": action.norm(dim=1).float()},
      },
      batch_size=[self.num_envs],
    )

  def counters(self) -> dict[str, torch.Tensor]:
    return {"nonfinite": torch.zeros((), dtype=torch.int64, device=self.device)}

  def diverged(self) -> TensorDict:
    return TensorDict(batch_size=[0])

  def state_dict(self) -> dict[str, Any]:
    state = {name: getattr(self, name).clone() for name in ("position", "age")}
    return state | {"random": self.random.state_dict()}

  def load_state_dict(self, state: dict[str, Any]) -> None:
    for name in ("position", "age"):
      getattr(self, name).copy_(state[name])
    self.random.load_state_dict(state["random"])
