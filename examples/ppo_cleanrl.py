"""PPO in a single file, in the style of CleanRL, on Gymnasium's vector environments.

`python examples/ppo_cleanrl.py --env_id gpurobot/Ant-v0`. All data are torch tensors on one device.
"""

from argparse import ArgumentDefaultsHelpFormatter, ArgumentParser
from dataclasses import dataclass
from typing import Any

import gymnasium
import torch
from gymnasium import spaces
from torch import Tensor, nn
from torch.distributions import Normal

import gpurobot  # noqa: F401 registers the tasks in Gymnasium

HORIZON, EPOCHS, MINIBATCHES = 16, 4, 4
GAMMA, LAMBDA = 0.99, 0.95
CLIP, VALUE_WEIGHT, MAX_GRAD_NORM, LEARNING_RATE = 0.2, 1.0, 1.0, 1e-3


class Agent(nn.Module):
  """Actor and critic, with running normalisation of the observations."""

  mean: Tensor  # running mean of the observations [num_obs]
  variance: Tensor  # running variance of the observations [num_obs]

  def __init__(self, num_obs: int, num_actions: int) -> None:
    super().__init__()
    self.actor, self.critic = (
      nn.Sequential(nn.Linear(num_obs, 128), nn.ELU(), nn.Linear(128, 64), nn.ELU(), nn.Linear(64, outputs))
      for outputs in (num_actions, 1)
    )
    self.log_std = nn.Parameter(torch.zeros(num_actions))
    self.count = 1e-4
    self.register_buffer("mean", torch.zeros(num_obs))
    self.register_buffer("variance", torch.ones(num_obs))

  def forward(self, obs: Tensor) -> tuple[Normal, Tensor]:
    """Return the action distribution [n, num_actions] and the value [n] for observations [n, num_obs]."""
    x = ((obs - self.mean) / (self.variance + 1e-8).sqrt()).clamp(-10, 10)
    return Normal(self.actor(x), self.log_std.exp()), self.critic(x).squeeze(-1)

  def observe(self, obs: Tensor) -> None:
    """Update mean and variance with observations [n, num_obs] (Chan, Golub and LeVeque 1979)."""
    share = len(obs) / (self.count + len(obs))
    delta = obs.mean(0) - self.mean
    self.variance.lerp_(obs.var(0, correction=0), share).add_(delta.square() * share * (1 - share))
    self.mean.add_(delta * share)
    self.count += len(obs)


@dataclass
class Rollout:
  """Rollout of HORIZON steps in all environments; each tensor is [HORIZON, num_envs, ...]."""

  obs: Tensor
  actions: Tensor
  logp: Tensor
  values: Tensor
  advantages: Tensor


class Collector:
  """Collector of rollouts and of the returns of the last episodes."""

  def __init__(self, envs: Any, agent: Agent, seed: int) -> None:
    self.envs, self.agent = envs, agent
    self.obs, _ = envs.reset(seed=seed)
    self.current = torch.zeros(envs.num_envs, device=self.obs.device)  # returns of the current episodes
    self.returns = torch.zeros(0, device=self.obs.device)  # returns of the last 100 episodes

  @torch.no_grad()
  def collect(self) -> Rollout:
    """Return the next HORIZON steps [HORIZON, num_envs, ...] with generalised advantage estimates."""
    steps = [self._step() for _ in range(HORIZON)]
    obs, actions, logp, values, rewards, ended = (torch.stack(column) for column in zip(*steps, strict=True))
    value, advantage, advantages = self.agent(self.obs)[1], torch.zeros_like(self.current), []
    for t in reversed(range(HORIZON)):
      goes_on = 1 - ended[t]
      delta = rewards[t] + GAMMA * value * goes_on - values[t]
      advantage = delta + GAMMA * LAMBDA * goes_on * advantage
      advantages.append(advantage)
      value = values[t]
    return Rollout(obs, actions, logp, values, torch.stack(advantages[::-1]))

  def _step(self) -> tuple[Tensor, ...]:
    obs = self.obs
    policy, value = self.agent(obs)
    action = policy.sample()
    self.obs, reward, terminated, truncated, info = self.envs.step(action)
    self.current += reward
    ended = terminated | truncated
    self.returns = torch.cat([self.returns, self.current[ended]])[-100:]
    self.current[ended] = 0
    # At a time limit, the value of the final observation replaces the rewards that would have followed.
    reward = reward + GAMMA * self.agent(info["final_obs"])[1] * truncated
    return obs, action, policy.log_prob(action).sum(-1), value, reward, ended.float()


def update(agent: Agent, optimizer: torch.optim.Optimizer, rollout: Rollout) -> None:
  """Update the agent with EPOCHS passes over a rollout."""
  batch = {name: tensor.flatten(0, 1) for name, tensor in vars(rollout).items()}
  returns = batch["values"] + batch["advantages"]
  for _ in range(EPOCHS):
    for index in torch.randperm(len(returns), device=returns.device).chunk(MINIBATCHES):
      policy, value = agent(batch["obs"][index])
      ratio = (policy.log_prob(batch["actions"][index]).sum(-1) - batch["logp"][index]).exp()
      advantage = batch["advantages"][index]
      advantage = (advantage - advantage.mean()) / (advantage.std() + 1e-8)
      gain = torch.minimum(ratio * advantage, ratio.clamp(1 - CLIP, 1 + CLIP) * advantage)
      loss = VALUE_WEIGHT * (value - returns[index]).square().mean() / 2 - gain.mean()
      optimizer.zero_grad()
      loss.backward()
      nn.utils.clip_grad_norm_(agent.parameters(), MAX_GRAD_NORM)
      optimizer.step()


def train(env_id: str, num_envs: int, steps: int, seed: int, device: str = "cpu") -> float:
  """Train for `steps` environment steps; return the mean return of the last 100 episodes."""
  torch.manual_seed(seed)
  envs = gymnasium.make_vec(env_id, num_envs=num_envs, training=True, output="torch", device=device)
  widths = (spaces.flatdim(space) for space in (envs.single_observation_space, envs.single_action_space))
  agent = Agent(*widths).to(device)
  optimizer = torch.optim.Adam(agent.parameters(), LEARNING_RATE, eps=1e-5)
  collector = Collector(envs, agent, seed)
  iterations = max(1, steps // (HORIZON * num_envs))
  for iteration in range(iterations):
    optimizer.param_groups[0]["lr"] = LEARNING_RATE * (1 - iteration / iterations)
    rollout = collector.collect()
    update(agent, optimizer, rollout)
    agent.observe(rollout.obs.flatten(0, 1))  # after the update, which needs the moments of the rollout
    if iteration % 20 == 0:
      print(f"{(iteration + 1) * HORIZON * num_envs} steps, return {float(collector.returns.mean()):.4g}")
  return float(collector.returns.mean())


if __name__ == "__main__":
  parser = ArgumentParser(description=__doc__, formatter_class=ArgumentDefaultsHelpFormatter)
  parser.add_argument("--env_id", default="gpurobot/Ant-v0", help="Gymnasium id of the environment")
  parser.add_argument("--num_envs", default=1024, type=int, help="number of environments")
  parser.add_argument("--steps", default=3_000_000, type=int, help="total number of environment steps")
  parser.add_argument("--seed", default=0, type=int, help="random seed of policy and environments")
  parser.add_argument("--device", default="cpu", help="device: cpu or cuda")
  print(f"return: {train(**vars(parser.parse_args())):.4g}")
