"""Benchmark cases as data: models, settings and goals."""

from dataclasses import dataclass
from typing import Literal

SUBSTEPS = 5  # physics steps per control step, as in Gymnasium's environments
THREADS = (1, 2)
PARITY_STATES = 64  # number of states of a benchmarked run that are compared with MuJoCo C


@dataclass(frozen=True)
class Robot:
  """Benchmarked model: a file, with optional changes of its integrator, its floor and its geoms."""

  file: str = ""  # path under gymnasium/ (its MuJoCo assets), assets/ or benchmarks/ (benchmarks/robots/)
  integrator: Literal["Euler"] | None = None  # None: the integrator of the file
  rough: bool = False  # whether a height field replaces the plane called floor
  meshes: str = ""  # pattern of the names of geoms that meshes replace
  links: int = 0  # number of links of a chain, in place of a file


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
  "mesh_biped": Robot(
    "assets/biped/robot.xml", meshes="torso|head|(left|right)_(thigh|shin|foot|heel.*|toe.*|forearm|hand)"
  ),
  "mesh_cube_in_hand": Robot("assets/hand/robot.xml", meshes="cube"),
  "pile": Robot("benchmarks/pile.xml"),
  "boxes": Robot("benchmarks/boxes.xml"),
  "chain": Robot(links=100),
  "tendon_finger": Robot("benchmarks/tendon_finger.xml"),
}
# goals for the kernel build time [s], by robot
KERNELS = {"ant": 10, "humanoid": 15, "hand": 30}
HUMANOID_BYTES = 16384  # goal for the memory of an environment of Humanoid


@dataclass(frozen=True)
class PhysicsCase:
  """Physics benchmark: one model in one situation, with random controls and always the Newton solver."""

  name: str
  robot: str  # in ROBOTS
  warm: int  # control steps from the home pose to the timed situation
  goal: float  # goal for the speed, relative to MuJoCo with the same number of threads
  spread: float = 1.0  # largest control offset from home, as a fraction of half the control range
  num_envs: int = 4096
  peer_envs: int = 512  # environments for MuJoCo: its time per environment does not depend on their number
  steps: int = 20  # control steps per measurement
  repetitions: int = 7  # alternating measurements of each engine; the median counts


PHYSICS = (
  PhysicsCase("ant", "ant", warm=60, goal=40),
  PhysicsCase("half_cheetah", "half_cheetah", warm=60, goal=20),
  PhysicsCase("hopper", "hopper", warm=60, goal=15),
  PhysicsCase("humanoid_standing", "humanoid", warm=0, goal=28, num_envs=2048),
  PhysicsCase("humanoid_heap", "humanoid", warm=80, goal=22, num_envs=2048),
  PhysicsCase("ant_rk4", "ant_rk4", warm=60, goal=28),
  PhysicsCase("humanoid_rk4", "humanoid_rk4", warm=80, goal=16, num_envs=2048),
  PhysicsCase("quadruped_on_rough_ground", "quadruped", warm=40, goal=20, spread=0.15, num_envs=2048),
  PhysicsCase("arm_and_cube_on_table", "arm", warm=40, goal=22, spread=0.25, num_envs=2048),
  PhysicsCase("hand_holding_cube", "hand", warm=40, goal=18, spread=0.5, num_envs=2048),
  PhysicsCase("biped_of_meshes", "mesh_biped", warm=40, goal=15, spread=0.3, num_envs=2048),
  PhysicsCase("hand_holding_mesh", "mesh_cube_in_hand", warm=40, goal=12, spread=0.5, num_envs=2048),
  PhysicsCase("pile_of_boxes_and_cylinders", "pile", warm=60, goal=8, num_envs=1024),
  PhysicsCase("pile_of_thirty_boxes", "boxes", warm=20, goal=5, num_envs=512, peer_envs=128, steps=10),
  PhysicsCase("tendon_driven_finger", "tendon_finger", warm=60, goal=15),
)


@dataclass(frozen=True)
class TrainingPeer:
  """Peer of a training benchmark: Stable-Baselines3's PPO with one Gymnasium environment per process."""

  name: str
  environment: str  # Gymnasium id
  workers: int = 2  # number of processes


TRAINING = (
  TrainingPeer("same_model", "benchmarks.training.gym_ant:benchmarks/Ant-v0"),
  TrainingPeer("stock_ant", "Ant-v5"),
)
# Ant with the environments and the network of Isaac Gym. The task itself learns sooner with fewer of both.
ISAAC_ANT = (
  "task=ant",
  "num_envs=4096",
  "ppo.hidden=[256,128,64]",
  "ppo.epochs=4",
  "ppo.minibatches=2",
  "ppo.reference_minibatch=32768",
  "ppo.kl_target=0.008",
  "ppo.log_std_init=0",
)
TRAINING_SECONDS = 20.0  # duration of each of two own measurements, before and after the peers


@dataclass(frozen=True)
class Goal:
  """Goal of a training: a level of a column of its log, and a time limit."""

  column: str
  level: float
  seconds: float  # training time
  least: bool = True  # whether the level is a lower bound; if not, an upper bound, as for an error
  evaluated: bool = True  # whether an evaluation reports it too


@dataclass(frozen=True)
class Curve:
  """Learning curve: the training time of each seed, and the goals.

  `words` are settings of the training beside the task's own, such as a teacher.
  """

  task: str
  seconds: float
  goals: tuple[Goal, ...]
  seeds: tuple[int, ...] = (0, 1, 2)
  engine: str = "mujoco"  # second engine in which the trained policy is evaluated
  shown: str = "return"  # column that is compared between the engines
  words: tuple[str, ...] = ()

  @property
  def columns(self) -> tuple[str, ...]:
    """The columns that are drawn: the return, those with goals, and the compared one."""
    return tuple(dict.fromkeys(("return", *(goal.column for goal in self.goals), self.shown)))


def _return(level: float, minutes: float) -> Goal:
  return Goal("return", level, 60 * minutes)


def _success(level: float, minutes: float) -> Goal:
  return Goal("success", level, 60 * minutes)


def _gym(name: str, minutes: float, *levels: float) -> Curve:
  """Return the curve of a Gymnasium task; its policy is evaluated in Gymnasium's own environment."""
  goals = tuple(_return(level, 20) for level in levels)
  return Curve(f"gym/{name}-v5", minutes * MINUTE, goals, engine="gymnasium")


def _dm(name: str, minutes: float) -> Curve:
  """Return a curve of a task of the DeepMind Control Suite; returns are at most 1,000."""
  return Curve(f"dm/{name}", minutes * MINUTE, ())


def _long(task: str, *goals: Goal, shown: str) -> Curve:
  """Return a curve of half an hour."""
  return Curve(task, 30 * MINUTE, goals, shown=shown)


def _student(task: str, teacher: str, goal: Goal, *words: str) -> Curve:
  """Return the curve of a student with images, distilled from a teacher that observes the state."""
  given = ("algorithm=distill", f"teacher={teacher}", *words)
  return Curve(task, 20 * MINUTE, (goal,), shown="success", words=given)


MINUTE = 60.0
ERROR = 0.15  # goal for the errors of velocity [m/s] and yaw rate [rad/s]
# The student acts nearly as it would without noise, and takes many small steps of the optimiser.
OF_ARMS = (
  "ppo.log_std_init=-2",
  "ppo.horizon=16",
  "ppo.epochs=2",
  "ppo.minibatches=16",
  "max_steps=400000",
)
CURVES = (
  Curve("cartpole", 30, (_return(490, 5 / MINUTE),)),
  Curve("cartpole_pixels", 20 * MINUTE, (_return(450, 20),)),
  Curve("ball_balance", MINUTE, (_success(0.95, 5),), shown="success"),
  Curve("quadcopter", MINUTE, (_success(0.95, 5),), shown="success"),
  Curve("ant", 2 * MINUTE, (_return(3000, 0.5), _return(6000, 1)), shown="forward_speed"),
  Curve("humanoid", 6 * MINUTE, (_return(5000, 8),)),
  Curve(
    "quadruped",
    4 * MINUTE,
    tuple(Goal(f"{name}_error", ERROR, 3 * MINUTE, least=False) for name in ("velocity", "yaw")),
    shown="velocity_error",
  ),
  _long("quadruped_rough", Goal("terrain_level", 5, 30 * MINUTE, evaluated=False), shown="success"),
  _student(
    "quadruped_rough_depth",
    "runs/curves/quadruped_rough/0",
    Goal("terrain_level", 3.5, 45 * MINUTE, evaluated=False),  # 0.8 of its teacher's level
    "num_envs=256",  # more episodes in as many steps: the curriculum rises by a level per success
    "distill.mix_steps=250000",
  ),
  Curve("quadruped_getup", 4 * MINUTE, (), shown="success"),
  Curve(
    "biped",
    20 * MINUTE,
    (Goal("velocity_error", ERROR, 20 * MINUTE, least=False),),
    shown="velocity_error",
  ),
  Curve("humanoid_mimic", 15 * MINUTE, (_success(0.95, 15),), shown="success"),
  Curve(
    "humanoid_amp",
    45 * MINUTE,
    (Goal("velocity_error", 0.2, 45 * MINUTE, least=False),),
    shown="velocity_error",
  ),
  Curve("arm_reach", 1.5 * MINUTE, (_success(0.95, 5),), shown="success"),
  Curve("cube_lift", 3 * MINUTE, (_success(0.9, 15),), shown="success"),
  _student("arm_reach_rgb", "assets/demos/arm_reach.pt", _success(0.8, 20), *OF_ARMS),
  _student("cube_lift_depth", "runs/cube_teacher", _success(0.8, 20), *OF_ARMS),
  _long("cube_stack", _success(0.9, 30), shown="success"),
  Curve("drawer_open", 3 * MINUTE, (), shown="success"),
  Curve("peg_insert", 3 * MINUTE, (), shown="success"),
  _long("hand_cube", Goal("consecutive_successes", 10, 30 * MINUTE), shown="consecutive_successes"),
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
  _dm("cartpole_balance", 1),
  _dm("reacher_easy", 2),
  _dm("ball_in_cup_catch", 4),
  _dm("finger_spin", 4),
  _dm("cartpole_swingup", 4),
  _dm("walker_walk", 5),
  _dm("cheetah_run", 5),
)

# Tasks to compare the algorithms on, and the level to reach: PPO's goal, or about its last value.
LEVELS = {
  "cartpole": _return(490, 5 / MINUTE),
  "ball_balance": _success(0.95, 5),
  "ant": _return(6000, 1),
  "quadruped": Goal("velocity_error", ERROR, 3 * MINUTE, least=False),
  "hand_cube": Goal("consecutive_successes", 4.3, 30 * MINUTE),
  "gym/Hopper-v5": _return(2500, 20),
  "gym/HalfCheetah-v5": _return(6000, 20),
  "gym/Humanoid-v5": _return(5000, 20),
}
OFF_POLICY = ("sac", "td3")  # algorithms beside PPO; their curves are in folders of their names
