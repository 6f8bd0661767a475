"""Rows of the table of results: what was measured, its goal, and the command that measures it."""

from typing import NamedTuple

from benchmarks import cases


class Row(NamedTuple):
  """Row of the table of results: a quantity, the names of its figures, its goal, unit and command."""

  what: str
  figures: tuple[str, ...]
  goal: str
  unit: str = " x"
  command: str = ""  # "": make bench


def _physics(what: str, name: str) -> Row:
  (case,) = (case for case in cases.PHYSICS if case.name == name)
  figures = tuple(f"physics.{name}.threads{threads}.ratio" for threads in cases.THREADS)
  return Row(f"Physics of {what}, 1 / 2 threads", figures, f">= {case.goal:g} x MuJoCo C")


def _kernel(what: str, robot: str) -> Row:
  goal = f"<= {cases.KERNELS[robot]} s"
  return Row(f"Kernels of {what} built", (f"kernel.{robot}.build_seconds",), goal, " s")


def _sac(what: str, goal: str, *figures: str) -> Row:
  command = "python -m benchmarks training.sac"
  names = tuple(f"off_policy.{name}_ratio" for name in figures)
  return Row(what, names, f">= {goal} x its steps/s", command=command)


def _curve(what: str, task: str, index: int = 0) -> Row:
  (curve,) = (curve for curve in cases.CURVES if curve.task == task)
  goal = curve.goals[index]
  figures = tuple(f"curve.{task}.{seed}.seconds_to_{goal.level:g}" for seed in curve.seeds)
  what, command = (
    f"{what} to a mean return of {goal.level:,}, 3 seeds",
    f"python -m benchmarks.learning.curves {task}",
  )
  return Row(what, figures, f"<= {goal.seconds:g} s", " s", command)


ROWS = (
  _physics("Ant", "ant"),
  _physics("HalfCheetah", "half_cheetah"),
  _physics("Hopper", "hopper"),
  _physics("Humanoid with self-collision, standing", "humanoid_standing"),
  _physics("Humanoid in a heap on the floor", "humanoid_heap"),
  _physics("Ant, Runge-Kutta in both", "ant_rk4"),
  _physics("Humanoid in a heap, Runge-Kutta in both", "humanoid_rk4"),
  _physics("a quadruped on a height field", "quadruped_on_rough_ground"),
  _physics("an arm with a gripper and a cube on a table", "arm_and_cube_on_table"),
  _physics("a 16-joint hand holding a cube", "hand_holding_cube"),
  _physics("a biped of 20 meshes that collide", "biped_of_meshes"),
  _physics("the hand with a mesh", "hand_holding_mesh"),
  _physics("a pile of boxes and cylinders", "pile_of_boxes_and_cylinders"),
  _physics("a pile of thirty boxes", "pile_of_thirty_boxes"),
  _physics("a finger with four cables", "tendon_driven_finger"),
  _kernel("Ant", "ant"),
  Row("Kernels of Ant loaded from the cache", ("kernel.ant.load_seconds",), "< 1 s", " s"),
  _kernel("Humanoid", "humanoid"),
  _kernel("the hand with its cube", "hand"),
  Row(
    "Memory of an environment of Humanoid",
    ("physics.humanoid_heap.bytes_per_env",),
    f"< {cases.HUMANOID_BYTES:,} bytes",
    " bytes",
  ),
  Row(
    "Training Ant: network 256-128-64, 4 epochs of 2 minibatches",
    ("training.ant.gpurobot",),
    ">= 80,000 steps/s, 160,000 with AMX",
    " steps/s",
  ),
  Row("beside Stable-Baselines3, same model", ("training.same_model.ratio",), ">= 20 x its steps/s"),
  Row("beside Stable-Baselines3, Ant-v5", ("training.stock_ant.ratio",), ">= 30 x its steps/s"),
  _sac("SAC's environment steps beside Stable-Baselines3, HalfCheetah-v5", "10", "collected_steps_scalar"),
  _sac(
    "with two gradient steps of batch 256 for each step of 1,024 environments; in float32",
    *("10", "steps_scalar", "steps_scalar_float32"),
  ),
  _sac(
    "SAC's gradient steps, batch 256, the peer's network; in float32",
    *("2", "gradient_steps_scalar", "gradient_steps_scalar_float32"),
  ),
  Row(
    "Share of an iteration outside of physics, network and update", ("iteration.overhead_share",), "< 0.1", ""
  ),
  Row("Two ranks of one thread beside one", ("scaling.ratio",), ">= 1.85 x"),
  Row("Memory that 9,000 iterations add", ("memory.growth_mb",), "flat", " MB"),
  _curve("Ant", "ant"),
  _curve("Ant", "ant", index=1),
  _curve("Cartpole", "cartpole"),
  Row(
    "Ant's speed here / in MuJoCo C",
    ("transfer.ant.own.forward_speed", "transfer.ant.mujoco.forward_speed"),
    "within 5 %",
    " m/s",
    "python -m benchmarks.learning.transfer ant",
  ),
)
