"""Training speed of Ant, compared with Stable-Baselines3's PPO, in environment steps per second."""

import itertools
import statistics
import time

import gymnasium
from stable_baselines3 import PPO
from stable_baselines3.common.env_util import make_vec_env
from stable_baselines3.common.torch_layers import BaseFeaturesExtractor
from stable_baselines3.common.vec_env import SubprocVecEnv
from torch import Tensor, nn

import tasks
from benchmarks import cases
from benchmarks.report import line
from benchmarks.training import fused
from gpurobot.device.distributed import World
from gpurobot.learn.network import ACTIVATIONS
from gpurobot.settings import config
from gpurobot.shell import cli


class Trunk(BaseFeaturesExtractor):
  """Hidden layers that actor and critic share, as in the network of this project."""

  def __init__(self, space: gymnasium.spaces.Box, ppo: config.PPOConfig) -> None:
    super().__init__(space, ppo.hidden[-1])
    widths = [space.shape[0], *ppo.hidden]
    layers = [(nn.Linear(i, o), ACTIVATIONS[ppo.activation]()) for i, o in itertools.pairwise(widths)]
    self.layers = nn.Sequential(*(module for pair in layers for module in pair))

  def forward(self, observation: Tensor) -> Tensor:
    """Return features [batch, hidden[-1]] of observations [batch, width]."""
    return self.layers(observation)


def own_speed(seconds: float) -> float:
  """Train Ant with `train.py`; return its speed after the first row of the log [environment steps/s]."""
  rows = fused.logged("train.py", *cases.ISAAC_ANT, f"max_seconds={seconds}")
  return (rows[-1]["steps"] - rows[0]["steps"]) / (rows[-1]["seconds"] - rows[0]["seconds"])


def peer_speed(peer: cases.TrainingPeer, settings: config.TrainConfig) -> float:
  """Run an iteration of Stable-Baselines3 with the same network, epochs and batch; return steps/s."""
  ppo = settings.ppo
  samples = settings.num_envs * ppo.horizon
  unseen = {"render_mode": None}
  workers = make_vec_env(peer.environment, peer.workers, vec_env_cls=SubprocVecEnv, env_kwargs=unseen)
  learner = PPO(
    "MlpPolicy",
    workers,
    n_steps=samples // peer.workers,
    batch_size=samples // ppo.minibatches,
    n_epochs=ppo.epochs,
    policy_kwargs={
      "features_extractor_class": Trunk,
      "features_extractor_kwargs": {"ppo": ppo},
      "net_arch": [],
    },
    device="cpu",
  )
  start = time.perf_counter()
  learner.learn(samples)
  seconds = time.perf_counter() - start
  workers.close()
  return samples / seconds


def run() -> None:
  """Print training speeds and ratios; the own speed is measured before and after the peers."""
  settings, _ = cli.parse([*cases.ISAAC_ANT], tasks.load, World())
  fused.build(cases.ISAAC_ANT)
  own = [own_speed(cases.TRAINING_SECONDS)]
  peers = {peer: peer_speed(peer, settings) for peer in cases.TRAINING}
  own.append(own_speed(cases.TRAINING_SECONDS))
  line("training.ant.gpurobot", statistics.mean(own))
  for peer, speed in peers.items():
    line(f"training.{peer.name}.stable_baselines3", speed)
    line(f"training.{peer.name}.ratio", statistics.mean(own) / speed)
