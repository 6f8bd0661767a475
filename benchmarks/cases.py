"""What is measured: models, settings and goals. Nothing here runs."""

from dataclasses import dataclass

SUBSTEPS = 5  # physics steps in a control step, as in Gymnasium's environments
THREADS = (1, 2)
PARITY_STATES = 64  # states of the benchmarked run compared with MuJoCo C


@dataclass(frozen=True)
class PhysicsCase:
  """One model in one situation, stepped under random controls; Euler and Newton whatever the file asks."""

  name: str
  robot: str  # file of Gymnasium's folder of MuJoCo assets
  warm: int  # control steps from the model's default pose to the situation that is timed
  goal: float  # times MuJoCo's speed at equal threads
  num_envs: int = 4096
  peer_envs: int = 512  # MuJoCo's time per environment does not depend on their number
  steps: int = 20  # control steps in one measurement
  repetitions: int = 7  # of each engine, in turns; the median counts


PHYSICS = (
  PhysicsCase("ant", "ant", warm=60, goal=28),
  PhysicsCase("half_cheetah", "half_cheetah", warm=60, goal=15),
  PhysicsCase("hopper", "hopper", warm=60, goal=15),
  PhysicsCase("humanoid_standing", "humanoid", warm=0, goal=14, num_envs=2048),
  PhysicsCase("humanoid_heap", "humanoid", warm=80, goal=14, num_envs=2048),
)


@dataclass(frozen=True)
class TrainingPeer:
  """Stable-Baselines3's PPO on one Gymnasium environment, each worker a process of its own."""

  name: str
  environment: str  # Gymnasium's id
  goal: float  # times its training speed
  workers: int = 2


TRAINING = (
  TrainingPeer("same_model", "benchmarks.gym_ant:benchmarks/Ant-v0", goal=20),
  TrainingPeer("stock_ant", "Ant-v5", goal=30),
)
ROBOTS = ("ant", "half_cheetah", "hopper", "humanoid")  # whose GPU kernels are measured
TRAINING_SECONDS = 20.0  # of each of two measurements of this project's trainer, before and after the peers


@dataclass(frozen=True)
class Curve:
  """A learning curve: how long each of its seeds trains, and the mean returns to reach by a time."""

  task: str
  seconds: float
  levels: tuple[tuple[float, float], ...]  # (seconds of training, mean return)
  seeds: tuple[int, ...] = (0, 1, 2)


CURVES = (
  Curve("cartpole", seconds=30, levels=((30, 490),)),
  Curve("ant", seconds=360, levels=((240, 3000), (720, 6000))),
)
