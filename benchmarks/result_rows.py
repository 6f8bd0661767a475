"""Rows of the table of results: what was measured, its goal, and the command that measures it."""

from typing import NamedTuple

from benchmarks import cases


class Row(NamedTuple):
  """Row of the table of results: a quantity, the names of its figures, its goal and its command."""

  what: str
  figures: tuple[str, ...]
  goal: str
  command: str
  unit: str = ""


def _physics(what: str, name: str) -> Row:
  (case,) = (case for case in cases.PHYSICS if case.name == name)
  figures = tuple(f"physics.{name}.threads{threads}.ratio" for threads in cases.THREADS)
  return Row(f"Physics of {what}, 1 / 2 threads", figures, f">= {case.goal:g} x MuJoCo C", "make bench", " x")


def _kernel(what: str, robot: str) -> Row:
  goal = f"<= {cases.KERNELS[robot]} s"
  return Row(f"Kernels of {what} built", (f"kernel.{robot}.build_seconds",), goal, "make bench", " s")


def _memory(what: str, case: str) -> Row:
  goal = f"< {cases.MEMORY[case]:,} bytes"
  return Row(
    f"Memory of an environment of {what}", (f"physics.{case}.bytes_per_env",), goal, "make bench", " bytes"
  )


def _curve(what: str, task: str, index: int = 0) -> Row:
  (curve,) = (curve for curve in cases.CURVES if curve.task == task)
  goal = curve.goals[index]
  figures = tuple(f"curve.{task}.{seed}.seconds_to_{goal.level:g}" for seed in curve.seeds)
  command = f"python -m benchmarks.learning.curves {task}"
  return Row(
    f"{what} to a mean return of {goal.level:,}, 3 seeds", figures, f"<= {goal.seconds:g} s", command, " s"
  )


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
  Row("Kernels of Ant loaded from the cache", ("kernel.ant.load_seconds",), "< 1 s", "make bench", " s"),
  _kernel("Humanoid", "humanoid"),
  _kernel("the hand with its cube", "hand"),
  _memory("Humanoid", "humanoid_heap"),
  Row(
    "Training Ant: network 256-128-64, 4 epochs of 2 minibatches",
    ("training.ant.gpurobot",),
    ">= 80,000 steps/s, 160,000 with AMX",
    "make bench",
    " steps/s",
  ),
  Row(
    "beside Stable-Baselines3, same model",
    ("training.same_model.ratio",),
    ">= 20 x its steps/s",
    "make bench",
    " x",
  ),
  Row(
    "beside Stable-Baselines3, Ant-v5",
    ("training.stock_ant.ratio",),
    ">= 30 x its steps/s",
    "make bench",
    " x",
  ),
  Row(
    "SAC's environment steps beside Stable-Baselines3, HalfCheetah-v5",
    ("off_policy.collected_steps_scalar_ratio",),
    ">= 10 x its steps/s",
    "python -m benchmarks training.sac",
    " x",
  ),
  Row(
    "with two gradient steps of batch 256 for each step of 1,024 environments; in float32",
    ("off_policy.steps_scalar_ratio", "off_policy.steps_scalar_float32_ratio"),
    ">= 10 x its steps/s",
    "python -m benchmarks training.sac",
    " x",
  ),
  Row(
    "SAC's gradient steps, batch 256, the peer's network; in float32",
    ("off_policy.gradient_steps_scalar_ratio", "off_policy.gradient_steps_scalar_float32_ratio"),
    ">= 2 x its steps/s",
    "python -m benchmarks training.sac",
    " x",
  ),
  Row(
    "PPO of quadruped_rough with overlap=true, 2,048 environments",
    ("overlap.quadruped_rough.ratio",),
    ">= 1.25 x the speed without",
    "python -m benchmarks training.overlap",
    " x",
  ),
  Row(
    "Share of an iteration outside of physics, network and update",
    ("iteration.overhead_share",),
    "< 0.1",
    "make bench",
  ),
  Row("Two ranks of one thread beside one", ("scaling.ratio",), ">= 1.85 x", "make bench", " x"),
  Row("Memory that 9,000 iterations add", ("memory.growth_mb",), "flat", "make bench", " MB"),
  _curve("Ant", "ant"),
  _curve("Ant", "ant", index=1),
  _curve("Cartpole", "cartpole"),
  Row(
    "Ant's speed here / in MuJoCo C",
    ("transfer.ant.own.forward_speed", "transfer.ant.mujoco.forward_speed"),
    "within 5 %",
    "python -m benchmarks.learning.transfer ant",
    " m/s",
  ),
)
