"""Cases to measure: models, settings and goals. Nothing here runs."""

from dataclasses import dataclass
from typing import Literal

SUBSTEPS = 5  # physics steps in a control step, as in Gymnasium's environments
THREADS = (1, 2)
PARITY_STATES = 64  # states of the benchmarked run compared with MuJoCo C


@dataclass(frozen=True)
class Robot:
  """A model to measure: a file, the integrator in its place, the ground in the place of its floor."""

  file: str  # under gymnasium/ (its folder of MuJoCo assets) or assets/ (this project's)
  integrator: Literal["Euler"] | None = None  # None: what the file asks for
  rough: bool = False  # a height field in the place of the plane called floor


ROBOTS = {
  "ant": Robot("gymnasium/ant.xml", integrator="Euler"),
  "half_cheetah": Robot("gymnasium/half_cheetah.xml"),
  "hopper": Robot("gymnasium/hopper.xml", integrator="Euler"),
  "humanoid": Robot("gymnasium/humanoid.xml", integrator="Euler"),
  "ant_rk4": Robot("gymnasium/ant.xml"),
  "humanoid_rk4": Robot("gymnasium/humanoid.xml"),
  "quadruped": Robot("assets/quadruped/robot.xml", rough=True),
  "arm": Robot("assets/arm/table.xml"),
  "hand": Robot("assets/hand/robot.xml"),
}
KERNELS = {"ant": 10, "humanoid": 15, "hand": 30}  # goals for building them [s]
MEMORY = {"humanoid_heap": 16384}  # goals for an environment's memory [bytes], by case


@dataclass(frozen=True)
class PhysicsCase:
  """One model in one situation, stepped under random controls with Newton's solver whatever the file asks."""

  name: str
  robot: str  # in ROBOTS
  warm: int  # control steps from the model's home to the situation that is timed
  goal: float  # times MuJoCo's speed at equal threads
  spread: float = 1.0  # of the controls about those of home, in halves of their ranges
  num_envs: int = 4096
  peer_envs: int = 512  # MuJoCo's time per environment does not depend on their number
  steps: int = 20  # control steps in one measurement
  repetitions: int = 7  # of each engine, in turns; the median counts


PHYSICS = (
  PhysicsCase("ant", "ant", warm=60, goal=28),
  PhysicsCase("half_cheetah", "half_cheetah", warm=60, goal=20),
  PhysicsCase("hopper", "hopper", warm=60, goal=15),
  PhysicsCase("humanoid_standing", "humanoid", warm=0, goal=16, num_envs=2048),
  PhysicsCase("humanoid_heap", "humanoid", warm=80, goal=16, num_envs=2048),
  PhysicsCase("ant_rk4", "ant_rk4", warm=60, goal=28),
  PhysicsCase("humanoid_rk4", "humanoid_rk4", warm=80, goal=16, num_envs=2048),
  PhysicsCase("quadruped_on_rough_ground", "quadruped", warm=40, goal=10, spread=0.15, num_envs=2048),
  PhysicsCase("arm_and_cube_on_table", "arm", warm=40, goal=10, spread=0.25, num_envs=2048),
  PhysicsCase("hand_holding_cube", "hand", warm=40, goal=8, spread=0.5, num_envs=2048),
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
TRAINING_SECONDS = 20.0  # of each of two measurements of this project's trainer, before and after the peers


@dataclass(frozen=True)
class Goal:
  """A level that a column of a training's log is to reach, and by when."""

  column: str
  level: float
  seconds: float  # of training
  least: bool = True  # the level is the least that will do; else the most, as of an error
  evaluated: bool = True  # whether an evaluation tells it too


@dataclass(frozen=True)
class Curve:
  """A learning curve: how long each of its seeds trains, and what is to be reached."""

  task: str
  seconds: float
  goals: tuple[Goal, ...]
  seeds: tuple[int, ...] = (0, 1, 2)
  engine: str = "mujoco"  # in which the trained policy is looked at, beside its own
  shown: str = "return"  # what is compared of the two engines

  @property
  def columns(self) -> tuple[str, ...]:
    """What is drawn: the return, what has a level to reach, and what is compared."""
    return tuple(dict.fromkeys(("return", *(goal.column for goal in self.goals), self.shown)))


def _return(level: float, minutes: float) -> Goal:
  return Goal("return", level, 60 * minutes)


def _success(level: float, minutes: float) -> Goal:
  return Goal("success", level, 60 * minutes)


def _gym(name: str, minutes: float, *levels: float) -> Curve:
  """Return the curve of a task that Gymnasium's own environment judges."""
  goals = tuple(_return(level, 20) for level in levels)
  return Curve(f"gym/{name}-v5", minutes * MINUTE, goals, seeds=(0,), engine="gymnasium")


def _long(task: str, *goals: Goal, shown: str) -> Curve:
  """Return a curve of half an hour."""
  return Curve(task, 30 * MINUTE, goals, seeds=(0,), shown=shown)


MINUTE = 60.0
ERROR = 0.15  # of a robot's velocity [m/s], and of its turning [rad/s]
CURVES = (
  Curve("cartpole", 30, (_return(490, 0.5),)),
  Curve("ball_balance", MINUTE, (_success(0.95, 5),), shown="success"),
  Curve("quadcopter", MINUTE, (_success(0.95, 5),), shown="success"),
  Curve("ant", 4 * MINUTE, (_return(3000, 4), _return(6000, 12)), shown="forward_speed"),
  _long("humanoid", _return(5000, 45), shown="return"),
  Curve(
    "quadruped",
    8 * MINUTE,
    tuple(Goal(f"{name}_error", ERROR, 10 * MINUTE, least=False) for name in ("velocity", "yaw")),
    seeds=(0,),
    shown="velocity_error",
  ),
  _long("quadruped_rough", Goal("terrain_level", 3, 45 * MINUTE, evaluated=False), shown="success"),
  Curve("quadruped_getup", 4 * MINUTE, (), shown="success"),
  _long("biped", shown="velocity_error"),
  Curve("humanoid_mimic", 5 * MINUTE, (), shown="success"),
  Curve("arm_reach", 1.5 * MINUTE, (_success(0.95, 5),), shown="success"),
  Curve("cube_lift", 3 * MINUTE, (_success(0.9, 15),), shown="success"),
  _long("cube_stack", shown="success"),
  Curve("drawer_open", 3 * MINUTE, (), shown="success"),
  Curve("peg_insert", 3 * MINUTE, (), shown="success"),
  _long("hand_cube", shown="consecutive_successes"),
  _gym("InvertedPendulum", 1),
  _gym("InvertedDoublePendulum", 2, 9000),
  _gym("Reacher", 2),
  _gym("Pusher", 2),
  _gym("Swimmer", 2),
  _gym("Hopper", 4, 2500),
  _gym("HalfCheetah", 10, 6000),
  _gym("Walker2d", 5, 4000),
  _gym("Ant", 10, 4000),
  _gym("Humanoid", 4),
  _gym("HumanoidStandup", 4),
)


@dataclass(frozen=True)
class Ablation:
  """Settings to compare: words of `gpurobot.sweep`; the keys of `panels` tell pictures apart."""

  name: str
  words: tuple[str, ...]
  panels: tuple[str, ...] = ()

  def panel(self, setting: str) -> str:
    """Return which picture a setting is drawn in."""
    return " ".join(word for word in setting.split() if word.partition("=")[0] in self.panels)

  def label(self, setting: str) -> str:
    """Return what tells a setting from the others of its picture; of a single one, what it sets."""
    words = setting.split() or [word for word in self.words if word.startswith("ppo.")]
    return " ".join(word for word in words if word.partition("=")[0] not in self.panels)


SEEDS = "seed=0,1,2"
ANT = ("num_envs=2048", SEEDS, "max_steps=4e6")
TRANSFORMS = "ppo.reward_transform=symlog,scale,none"


def _sizes(task: str, reference: int, steps: str) -> Ablation:
  """Compare 1, 2, 4 and 8 times 512 environments, of which the first has the reference minibatch."""
  words = (
    "num_envs=512,1024,2048,4096",
    "ppo.lr_scaling=sqrt,none",
    "ppo.schedule=constant,adaptive",
    f"ppo.reference_minibatch={reference}",
  )
  name, panels = f"sqrt-{task}", ("ppo.lr_scaling", "ppo.schedule")
  return Ablation(name, (f"task={task}", *words, SEEDS, f"max_steps={steps}"), panels)


ABLATIONS = (
  Ablation("transform-ant", ("task=ant", TRANSFORMS, *ANT)),
  Ablation("symlog-ant", ("task=ant", "ppo.reward_transform=symlog", "ppo.reward_scale=1", *ANT)),
  Ablation("transform-cartpole", ("task=cartpole", TRANSFORMS, SEEDS, "max_steps=1e6")),
  _sizes("ant", 4096, "1.5e6"),
  _sizes("cartpole", 8192, "1e6"),
)
