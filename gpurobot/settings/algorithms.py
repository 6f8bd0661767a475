"""Settings of the learning algorithms."""

import dataclasses
from enum import StrEnum

from tasks.core.option import option

# Environments of an off-policy algorithm, unless they are given: few, so that each gets far into its episodes
# in few steps. After 6,400 gradient steps HalfCheetah runs at 1.5 m/s with 128, and at 1.6 m/s with 512,
# which take four times the environment steps.
OFF_POLICY_ENVS = 128


class Precision(StrEnum):
  """Arithmetic of the hidden layers; weights, heads, losses and optimiser use float32 or float64."""

  auto = "auto"  # bf16 on processors that multiply bf16 matrices in hardware, else float32
  float32 = "float32"
  bf16 = "bf16"
  float64 = "float64"


class Schedule(StrEnum):
  """Schedule of the learning rate."""

  adaptive = "adaptive"
  constant = "constant"


class Scaling(StrEnum):
  """Scaling of the learning rate with the size of the minibatch."""

  none = "none"
  sqrt = "sqrt"
  linear = "linear"


class Bootstrap(StrEnum):
  """Observation for the value after a truncated episode."""

  final = "final"
  next = "next"


class RewardTransform(StrEnum):
  """Transform of the reward before PPO sees it."""

  symlog = "symlog"
  scale = "scale"
  none = "none"


class Storage(StrEnum):
  """Type of the observations in a replay buffer."""

  float32 = "float32"
  float16 = "float16"
  bf16 = "bf16"
  uint8 = "uint8"


class Critic(StrEnum):
  """Output of the critic: a value, or a distribution over bins."""

  scalar = "scalar"
  twohot = "twohot"


class Encoder(StrEnum):
  """Network that turns an image into features."""

  nature = "nature"
  resnet = "resnet"


class Recurrence(StrEnum):
  """Recurrent layer of the network."""

  none = "none"
  lstm = "lstm"
  gru = "gru"


class Activation(StrEnum):
  """Activation function of the hidden layers."""

  elu = "elu"
  relu = "relu"
  silu = "silu"
  tanh = "tanh"


@dataclasses.dataclass
class RNDConfig:
  """RND: a reward for observations seen rarely so far."""

  weight: float = option(0.0, "weight of the novelty reward beside the task's; 0: none", low=0)
  weight_final: float | None = option(
    None, "weight of the novelty reward after weight_steps; null: constant", low=0
  )
  weight_steps: int = option(
    10_000_000, "environment steps over which the weight of the novelty reward changes linearly", low=1
  )
  group: str = option("policy", "observation group for the novelty reward: policy, or critic")
  blocks: list[str] = option([], "blocks of the group for the novelty reward; []: all")
  hidden: list[int] = option([128, 128], "units of each hidden layer of predictor and target", low=1)
  outputs: int = option(32, "random features of an observation to predict", low=1)
  lr: float = option(3e-4, "learning rate of the predictor", low=0)


@dataclasses.dataclass
class AMPConfig:
  """AMP: a reward for motions like a reference's."""

  style_weight: float = option(
    0.0, "weight of the style reward, for tasks with a style reference; 0: none", low=0
  )
  task_weight: float = option(1.0, "weight of the task's reward beside a style reward", low=0)
  hidden: list[int] = option([256, 128], "units of each hidden layer of the discriminator", low=1)
  lr: float = option(1e-4, "learning rate of the discriminator", low=0)
  gradient_penalty: float = option(
    10.0, "weight of half the squared gradient of the discriminator at the reference", low=0
  )
  updates: int = option(4, "gradient steps of the discriminator per iteration", low=1, high=1000)
  samples: int = option(
    1, "pairs of each environment from the rollout, and as many from the replay, in a gradient step", low=1
  )
  noise: float = option(
    0.0, "noise on the training samples of the discriminator, in standard deviations of a feature", low=0
  )


@dataclasses.dataclass
class LearnerConfig:
  """What PPO, SAC and TD3 have in common."""

  horizon: int = option(16, "steps per environment and iteration", low=1, high=2**32)
  gamma: float = option(0.99, "discount factor", low=0, high=1)
  reward_transform: RewardTransform = option(
    RewardTransform.symlog,
    "transform of the reward r: symlog(reward_scale r); scale: reward_scale r; none: r",
  )
  reward_scale: float | None = option(
    None, "factor on the reward; null: 0.1 / the root mean square of all rewards so far"
  )
  normalize_obs: bool = option(True, "normalise observations to zero mean and unit variance")
  hidden: list[int] = option([256, 128, 64], "units of each hidden layer", low=1)
  layer_norm: bool = option(False, "layer normalisation before each activation")
  activation: Activation = option(Activation.silu, "activation function of the hidden layers")
  network: str | None = option(
    None,
    "network of your own instead of the hidden layers: <file.py or module>:<class or function>",
    code=True,
  )
  encoder: Encoder | None = option(
    None,
    "encoder of images: nature, three convolutions; resnet, 15, with 3 to 10 times the work; null: nature",
  )
  encoder_features: int = option(256, "features of each image, which join the other observations", low=1)
  random_shift: int = option(
    0, "largest random shift of the images in training; 0: none", "pixels", low=0, high=64
  )
  precision: Precision = option(
    Precision.auto, "arithmetic of the hidden layers; auto: bf16 where the processor is fast in it"
  )


@dataclasses.dataclass
class PPOConfig(LearnerConfig):
  """PPO (proximal policy optimisation)."""

  epochs: int = option(4, "passes over the samples of an iteration", low=1, high=1000)
  minibatches: int = option(2, "minibatches per epoch", low=1)
  gae_lambda: float = option(0.95, "lambda of generalised advantage estimation", low=0, high=1)
  bootstrap: Bootstrap = option(
    Bootstrap.final,
    "observation for the value after a truncated episode: final; next, the first of the next episode, for "
    "critics that see the episode's age",
  )
  clip: float = option(0.2, "clip range of the probability ratio", low=0)
  value_clip: float = option(0.2, "clip range of the value, in normalised units", low=0)
  lr: float = option(3e-4, "initial learning rate at the reference minibatch", low=0)
  lr_max: float = option(1e-2, "largest adaptive learning rate at the reference minibatch", low=1e-6)
  lr_scaling: Scaling = option(
    Scaling.sqrt,
    "how learning rates grow with minibatch / reference_minibatch: none, sqrt, linear",
  )
  reference_minibatch: int = option(
    32768, "minibatch size, over all ranks, at which lr and lr_max hold as given", low=1
  )
  schedule: Schedule = option(Schedule.adaptive, "learning rate: adaptive, by the KL divergence; constant")
  kl_target: float = option(
    0.008,
    "target KL divergence; the adaptive rate changes outside of [target / 2, 2 target]",
    "nat",
    low=0,
  )
  max_grad_norm: float = option(1.0, "maximum norm of the gradient", low=0)
  critic_coef: float = option(2.0, "weight of the value loss", low=0)
  entropy_coef: float = option(0.0, "weight of the entropy bonus")
  entropy_coef_final: float | None = option(
    None, "weight of the entropy bonus after entropy_steps; null: constant"
  )
  entropy_steps: int = option(
    10_000_000, "environment steps over which the entropy bonus changes linearly", low=1
  )
  bounds_coef: float = option(1e-4, "weight of the penalty on action means beyond +-1.1", low=0)
  mirror_coef: float = option(0.0, "weight of the mirror symmetry loss, for tasks with a mirror", low=0)
  mirror_augment: bool = option(
    False, "train the policy on the mirror image of each sample too, for tasks with a mirror"
  )
  loss: str | None = option(
    None, "function of your own that changes the terms of the loss: <file.py or module>:<function>", code=True
  )
  shared: bool = option(True, "one trunk for actor and critic, if both see the same observations")
  encoder_shared: bool = option(True, "one encoder of each image that both actor and critic see")
  recurrent: Recurrence = option(Recurrence.none, "recurrent layer before the hidden layers: none, lstm, gru")
  recurrent_units: int = option(256, "units of the recurrent layer", low=1)
  sequence: int | None = option(
    None, "steps of back-propagation through time; it divides the horizon; null: the horizon", low=1
  )
  estimate: list[str] = option(
    [],
    "blocks of the critic that the policy estimates from its own observations, such as velocity; []: none",
  )
  squash: bool = option(False, "squash actions by tanh; otherwise the environment clips them")
  state_std: bool = option(False, "standard deviation of the actions from the network, by observation")
  log_std_init: float = option(0.0, "initial log standard deviation of the actions")
  log_std_min: float = option(-3.0, "smallest log standard deviation of the actions")
  critic: Critic = option(
    Critic.scalar, "output of the critic: scalar, a value; twohot, a distribution over bins"
  )
  rnd: RNDConfig = dataclasses.field(default_factory=RNDConfig)
  amp: AMPConfig = dataclasses.field(default_factory=AMPConfig)


@dataclasses.dataclass
class OffPolicyConfig(LearnerConfig):
  """Off-policy learning from a replay buffer."""

  # A batch of 256 and a gradient step for every 16 environment steps suit processors: their time goes to the
  # transitions that pass the critics. HalfCheetah learns as much from a gradient step on 256 transitions as
  # from one on 512: after 6,000 of either it runs at 1.4 m/s.
  horizon: int = option(4, "steps per environment and iteration", low=1, high=2**32)
  updates_per_step: int = option(8, "gradient steps after each step of all environments", low=1, high=1000)
  batch_size: int = option(256, "transitions of a gradient step, over all ranks", low=1)
  buffer_size: int = option(1_000_000, "transitions that the replay buffer holds, over all ranks", low=1)
  save_buffer: bool = option(
    True, "keep the replay buffer in checkpoints; without it a resume fills a new one"
  )
  storage: Storage = option(
    Storage.float32,
    "type of the observations in the replay buffer: float32; float16, bf16 and uint8 are rounded",
  )
  storage_blocks: list[str] = option([], "observation blocks to which storage applies; []: all")
  greedy_envs: int = option(
    0, "environments, over all ranks, that act without noise: the log has their return", low=0
  )
  learning_starts: int = option(16, "steps per environment with random actions before learning", low=1)
  prioritized: bool = option(False, "draw transitions by their last errors instead of uniformly")
  priority_alpha: float = option(0.6, "exponent of the error in its priority", low=0)
  priority_beta: float = option(
    0.4,
    "initial exponent of the importance weights: 0, no correction of the bias; 1, full, as after 1 M steps",
    low=0,
    high=1,
  )
  # With 3 and with 1, ball_balance has a return of 179 and 128 after 77,000 environment steps, and cartpole
  # passes 490 after 87,000 and not within 150,000. Hopper's, without noise, is 807 and 392 after 130,000.
  n_step: int = option(3, "steps of reward before the bootstrap", low=1, high=1000)
  # Values reach their horizon after 1 / ((1 - gamma) tau) gradient steps: 5,000 with 0.02, 2,000 with 0.05.
  tau: float = option(
    0.05, "share of the critics mixed into the target critics in a gradient step", low=0, high=1
  )
  policy_delay: int = option(2, "gradient steps of the critics per step of the policy", low=1, high=1000)
  # With 3e-4, HalfCheetah runs at 1.0 m/s after 6,400 gradient steps, with 1e-3 at 1.5 m/s.
  lr: float = option(1e-3, "learning rate", low=0)
  loss: str | None = option(
    None,
    "function of your own that changes the terms of the policy's loss: <file.py or module>:<function>",
    code=True,
  )
  hidden: list[int] = option([256, 256], "units of each hidden layer of the policy", low=1)
  critic_hidden: list[int] = option([256, 256], "units of each hidden layer of a critic", low=1)
  # HalfCheetah runs at 4.2 m/s after 0.13 M steps; with two-hot critics and their smaller value at 2.4 m/s.
  critic: Critic = option(
    Critic.scalar, "output of the critics: scalar, a value; twohot, a distribution over bins"
  )
  clipped_double_q: bool = option(
    False, "use the smaller value of the two critics; false: their mean, which is more optimistic"
  )
  layer_norm: bool = option(True, "layer normalisation before each activation")


@dataclasses.dataclass
class SACConfig(OffPolicyConfig):
  """SAC (soft actor-critic)."""

  alpha: float = option(0.01, "initial temperature: weight of the entropy", low=1e-8)
  # Noise costs reward: with -0.5, returns of cartpole stay at 475 of 500 in training, with -1 they pass 486.
  target_entropy: float = option(-1.0, "entropy per action that the temperature aims at", "nat")
  log_std_init: float = option(-0.5, "initial log standard deviation of the actions, before the tanh")
  log_std_min: float = option(-5.0, "smallest log standard deviation of the actions")


@dataclasses.dataclass
class TD3Config(OffPolicyConfig):
  """TD3 (twin delayed deep deterministic policy gradient)."""

  noise_min: float = option(0.001, "smallest standard deviation of the noise on the actions", low=0)
  noise_max: float = option(
    0.4, "largest standard deviation of the noise on the actions; each environment has its own", low=0
  )
  target_noise: float = option(0.1, "standard deviation of the noise on target actions", low=0)
  target_noise_clip: float = option(0.5, "largest noise on target actions", low=0)


class DistillLoss(StrEnum):
  """Loss of distillation, between the actions of teacher and student."""

  kl = "kl"
  mse = "mse"


@dataclasses.dataclass
class DistillConfig:
  """Distillation (rollout and network: ppo.*)."""

  loss: DistillLoss = option(
    DistillLoss.kl,
    "loss: kl, KL divergence of the student's actions from the teacher's; mse, squared error of their modes",
  )
  mix: float = option(
    1.0, "share of environments that the teacher drives in the first rollout", low=0, high=1
  )
  mix_steps: int = option(1_000_000, "environment steps over which that share falls linearly to 0", low=1)
  lr: float = option(1e-3, "learning rate", low=0)
  teacher_network: str | None = option(
    None, "network of the teachers, if it is your own: <file.py or module>:<class or function>", code=True
  )


AlgorithmConfig = PPOConfig | SACConfig | TD3Config
