"""Training with TorchRL's collector, advantages and PPO loss: `python examples/ppo_torchrl.py --task ant`."""

from argparse import ArgumentDefaultsHelpFormatter, ArgumentParser
from collections import deque

import torch
from tensordict.nn import AddStateIndependentNormalScale, TensorDictModule
from torch import nn
from torch.distributions import Independent, Normal
from torchrl.collectors import Collector
from torchrl.envs import Compose, RewardSum, TransformedEnv, VecNormV2
from torchrl.modules import MLP, ProbabilisticActor, ValueOperator
from torchrl.objectives import ClipPPOLoss
from torchrl.objectives.value import GAE

from gpurobot.adapters.torchrl import TorchRLEnv

HORIZON, EPOCHS, MINIBATCHES = 16, 4, 4


class Diagonal(Independent):
  """Diagonal normal distribution over actions [..., num_actions]."""

  def __init__(self, loc: torch.Tensor, scale: torch.Tensor) -> None:
    super().__init__(Normal(loc, scale), 1)


def networks(env: TransformedEnv) -> tuple[ProbabilisticActor, ValueOperator]:
  """Return actor and critic for the observation group `policy`."""
  num_actions = env.action_spec.shape[-1]
  layers = {"num_cells": [128, 64], "activation_class": nn.ELU}
  body = nn.Sequential(MLP(out_features=num_actions, **layers), AddStateIndependentNormalScale(num_actions))
  actor = ProbabilisticActor(
    TensorDictModule(body, ["policy"], ["loc", "scale"]),
    in_keys=["loc", "scale"],
    distribution_class=Diagonal,
    return_log_prob=True,
  )
  critic = ValueOperator(MLP(out_features=1, **layers), in_keys=["policy"])
  for network in (actor, critic):
    network(env.fake_tensordict())  # initialises the lazy first layers
  return actor, critic


def train(task: str, num_envs: int, steps: int, seed: int) -> float:
  """Train for `steps` environment steps; return the mean return of the last 100 episodes."""
  torch.manual_seed(seed)
  transforms = Compose(RewardSum(), VecNormV2(in_keys=["policy"], decay=1.0, reduce_batch_dims=True))
  env = TransformedEnv(TorchRLEnv(task, num_envs), transforms)
  env.set_seed(seed)
  actor, critic = networks(env)
  advantage = GAE(gamma=0.99, lmbda=0.95, value_network=critic)
  settings = {"clip_epsilon": 0.2, "entropy_bonus": False, "normalize_advantage": True}
  loss = ClipPPOLoss(actor, critic, loss_critic_type="l2", **settings)
  optimizer = torch.optim.Adam(loss.parameters(), 1e-3)
  returns: deque[float] = deque(maxlen=100)  # returns of the last episodes
  sizes = {"frames_per_batch": HORIZON * num_envs, "total_frames": steps}
  for data in Collector(env, actor, **sizes, auto_register_policy_transforms=True):
    advantage(data)
    batch = data.flatten()
    for _ in range(EPOCHS):
      for index in torch.randperm(len(batch)).chunk(MINIBATCHES):
        values = loss(batch[index])
        optimizer.zero_grad()
        (values["loss_objective"] + values["loss_critic"]).backward()
        nn.utils.clip_grad_norm_(loss.parameters(), 1.0)
        optimizer.step()
    returns.extend(data["next", "episode_reward"][data["next", "done"]].tolist())
    print(f"return {sum(returns) / max(1, len(returns)):.4g}")
  return sum(returns) / max(1, len(returns))


if __name__ == "__main__":
  parser = ArgumentParser(description=__doc__, formatter_class=ArgumentDefaultsHelpFormatter)
  parser.add_argument("--task", default="ant", help="name or file of a task")
  parser.add_argument("--num_envs", default=1024, type=int, help="number of environments")
  parser.add_argument("--steps", default=3_000_000, type=int, help="total number of environment steps")
  parser.add_argument("--seed", default=0, type=int, help="random seed of policy and environments")
  print(f"return: {train(**vars(parser.parse_args())):.4g}")
