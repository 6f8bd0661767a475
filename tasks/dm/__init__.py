"""Tasks of the DeepMind Control Suite, one module for each robot: `dm/walker_run` is `walker.py`.

`TASKS` lists the tasks of each module, with the settings by which they differ from the module's defaults.
"""

from typing import Any

TASKS: dict[str, dict[str, dict[str, Any]]] = {
  "acrobot": {"swingup": {}, "swingup_sparse": {"sparse": True}},
  "ball_in_cup": {"catch": {}},
  "cartpole": {
    "balance": {},
    "balance_sparse": {"sparse": True},
    "swingup": {"swing_up": True},
    "swingup_sparse": {"swing_up": True, "sparse": True},
    "two_poles": {"swing_up": True, "poles": 2},
    "three_poles": {"swing_up": True, "poles": 3},
  },
  "cheetah": {"run": {}},
  "dog": {
    "stand": {"speed": 0.0},
    "walk": {"speed": 1.0},
    "trot": {"speed": 3.0},
    "run": {"speed": 9.0},
    "fetch": {"speed": 0.0, "fetch": True},
  },
  "finger": {
    "spin": {},
    "turn_easy": {"target_size": 0.07},
    "turn_hard": {"target_size": 0.03},
  },
  "fish": {"upright": {"swim": False}, "swim": {}},
  "hopper": {"stand": {"hop": False}, "hop": {}},
  "humanoid": {
    "stand": {"speed": 0.0},
    "walk": {"speed": 1.0},
    "run": {"speed": 10.0},
    "run_pure_state": {"speed": 10.0, "pure_state": True},
  },
  "humanoid_CMU": {"stand": {"speed": 0.0}, "walk": {"speed": 1.0}, "run": {"speed": 10.0}},
  "lqr": {"lqr_2_1": {"masses": 2, "motors": 1}, "lqr_6_2": {"masses": 6, "motors": 2}},
  "manipulator": {
    "bring_ball": {},
    "bring_peg": {"peg": True},
    "insert_ball": {"insert": True},
    "insert_peg": {"peg": True, "insert": True},
  },
  "pendulum": {"swingup": {}},
  "point_mass": {"easy": {}, "hard": {"random_directions": True}},
  "quadruped": {"walk": {"speed": 0.5}, "run": {"speed": 5.0}, "fetch": {"fetch": True}},
  "reacher": {"easy": {"target_size": 0.05}, "hard": {"target_size": 0.015}},
  "stacker": {"stack_2": {"boxes": 2}, "stack_4": {"boxes": 4}},
  "swimmer": {"swimmer6": {"links": 6}, "swimmer15": {"links": 15}},
  "walker": {"stand": {"speed": 0.0}, "walk": {"speed": 1.0}, "run": {"speed": 8.0}},
}
# Tasks of the suite that are missing here, with the reason.
MISSING = {
  "quadruped_escape": "each of its episodes has a new terrain, and the engine's height fields cannot vary",
}
