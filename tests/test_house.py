"""The house's rules: who may import whom, how long things get, what is pinned, what make passes on."""

import ast
import functools
import os
import re
import subprocess
import sys
import tomllib
from collections.abc import Callable, Iterator, Sequence
from graphlib import TopologicalSorter
from pathlib import Path
from typing import NamedTuple

import pytest
from packaging.requirements import Requirement

ROOT = Path(__file__).parents[1]
PACKAGES = {"gpurobot", "physics", "tasks"}
TRACKED = subprocess.run(
  ["git", "ls-files"], cwd=ROOT, check=True, capture_output=True, text=True
).stdout.split()
SOURCES = [path for path in TRACKED if path.endswith(".py") and (ROOT / path).exists()]
SHIPPED = [path for path in SOURCES if path.split("/")[0] in {*PACKAGES, "train.py"}]

GROUND = {"gpurobot.device", "gpurobot.settings"}
PROGRAM = {*PACKAGES, "gymnasium", "numpy", "rich", "tensordict", "torch"}
ROS = {"geometry_msgs", "rclpy", "sensor_msgs", "std_msgs"}
TASK = {"tasks.base", "tasks.shared", "torch"}
# What a file may import beside the standard library; the first pattern that matches its path counts.
IMPORTS = {
  r"train\.py": {"gpurobot", "tasks"},
  r"gpurobot/training\.py": {*GROUND, "gpurobot.fusion", "gpurobot.learn", "gpurobot.run", "gpurobot.shell"},
  r"gpurobot/settings/.*": {
    "gpurobot.settings",
    "numpy",
    "omegaconf",
    "tasks.core.errors",
    "tasks.core.files",
    "tasks.core.option",
    "tasks.core.words",
    "yaml",
  },
  r"gpurobot/extras\.py": GROUND,
  r"gpurobot/shell/(declared|programs)\.py": set(),
  r"gpurobot/shell/help_text\.py": GROUND,
  r"gpurobot/shell/cli\.py": {*GROUND, "gpurobot.extras", "gpurobot.run", "gpurobot.shell", "torch"},
  r"gpurobot/fusion/.*": {"gpurobot.device", "gpurobot.fusion", "numpy", "physics.trace", "torch"},
  r"gpurobot/device/.*": {*GROUND, "numpy", "tensordict", "torch"},
  r"gpurobot/learn/.*": {*GROUND, "gpurobot.learn", "tensordict", "torch"},
  r"gpurobot/run/wandb_log\.py": {*GROUND, "gpurobot.run", "torch", "wandb"},
  r"gpurobot/run/mlflow_log\.py": {*GROUND, "gpurobot.run", "mlflow", "torch"},
  r"gpurobot/run/.*": {
    *GROUND,
    "gpurobot.extras",
    "gpurobot.learn",
    "gpurobot.run",
    "rich",
    "tensorboard",
    "tensordict",
    "torch",
  },
  r"gpurobot/adapters/.*": {*PROGRAM, "rl_games", "rsl_rl", "stable_baselines3", "torchrl"},
  r"gpurobot/viewer/.*": {*PROGRAM, "PIL", "glfw", "imageio", "mjviser", "mujoco", "viser", "websockets"},
  r"gpurobot/robot/.*": {*PROGRAM, *ROS, "cyclonedds", "mujoco"},
  r"gpurobot/search/ray_launch\.py": {"gpurobot", "ray"},
  r"gpurobot/.*": {*PROGRAM, "matplotlib"},
  r"tasks/__init__\.py": {"tasks.core", "tasks.dm"},
  r"tasks/base\.py": {"numpy", "physics", "tasks.core", "tensordict", "torch"},
  r"tasks/core/sensing\.py": {"physics", "tasks.core", "torch"},
  r"tasks/core/.*": {"numpy", "tasks.core", "tensordict", "torch"},
  r"tasks/shared/(robot_file|terrain)\.py": {*TASK, "physics.robot", "tasks.core"},
  r"tasks/shared/suite\.py": {*TASK, "numpy", "physics.host", "tasks.core"},
  r"tasks/shared/.*": {*TASK, "tasks.core"},
  r"tasks/motion/.*": {*TASK, "numpy", "physics", "tasks.core", "tasks.motion"},
  r"tasks/(motion_track|humanoid_(amp|mimic))\.py": {*TASK, "tasks.motion", "tasks.motion_track"},
  r"tasks/quadruped_rough_depth\.py": {*TASK, "tasks.quadruped_rough"},
  r"tasks/quadruped_.*": {*TASK, "tasks.quadruped"},
  r"tasks/cartpole_.*": {*TASK, "tasks.cartpole"},
  r"tasks/cube_lift_.*": {*TASK, "tasks.cube_lift"},
  r"tasks/arm_reach_.*": {*TASK, "tasks.arm_reach"},
  r"tasks/gym/.*": {*TASK, "tasks.gym"},
  r"tasks/dm/.*": {*TASK, "numpy", "tasks.dm"},
  r"tasks/.*": TASK,
  r"physics/(host|inverse_kinematics|load|steady_momentum|support|urdf)\.py": {"mujoco", "numpy", "physics"},
  r"physics/save\.py": {"mujoco", "physics"},
  r"physics/robot/.*": {"mujoco", "numpy", "physics"},
  r"physics/mesh_files\.py": {"trimesh"},
  r"physics/urdf_text\.py": {"physics", "xacro"},
  r"physics/(engines|parity)/.*": {"mujoco", "numpy", "physics", "torch"},
  r"physics/(simulation|trace/launcher|ray/raycaster|camera/(camera|renderer))\.py": {
    "numpy",
    "physics",
    "torch",
    "warp",
  },
  r"physics/.*": {"numpy", "physics", "warp"},
}

MAX_FILE, MAX_FUNCTION, MAX_PARAMETERS = 400, 40, 6
# What is longer than that, and why; twice as long has no excuse.
LONGER: dict[str, str] = {
  "physics/trace/kernel.py:body()": "the arguments of a native function",
  "physics/trace/kernel.py:step()": "the arguments of a kernel",
}


class Import(NamedTuple):
  module: str
  line: int


def runtime(body: Sequence[ast.AST]) -> Iterator[ast.AST]:
  """Yield the nodes of a file but for what type checkers alone see."""
  for node in body:
    checking = isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"
    if not checking:
      yield node
      yield from runtime([*ast.iter_child_nodes(node)])


@functools.cache
def tree(path: str) -> ast.Module:
  return ast.parse((ROOT / path).read_text())


def module(path: str) -> str:
  return path.removesuffix(".py").removesuffix("/__init__").replace("/", ".")


def room(path: str) -> str:
  """Return a file's folder; a file that lies in a package itself is a room of its own."""
  folder = path.rpartition("/")[0]
  return module(path) if folder in {"", *PACKAGES} or path.endswith("/__init__.py") else module(folder)


def arrows(place: Callable[[str], str]) -> dict[str, set[str]]:
  """Return which places, modules or rooms, each place of the packages imports from when it runs."""
  paths = {module(path): path for path in SHIPPED}
  found: dict[str, set[str]] = {place(path): set() for path in SHIPPED}
  for path in SHIPPED:
    for name in imported(path):
      target = name if name in paths else name.rpartition(".")[0]
      if target in paths and place(paths[target]) != place(path):
        found[place(path)].add(place(paths[target]))
  return found


@functools.cache
def imported(path: str) -> list[str]:
  """Return the names that a file imports when it runs."""
  return [own.module for own in imports(*runtime(tree(path).body))]


@pytest.mark.parametrize("place", [module, room])
def test_no_arrow_leads_back(place: Callable[[str], str]) -> None:
  """No module, and no room, imports what needs it: there is an order from the ground up."""
  assert list(TopologicalSorter(arrows(place)).static_order())


def imports(*nodes: ast.AST) -> Iterator[Import]:
  for node in nodes:
    if isinstance(node, ast.Import):
      yield from (Import(alias.name, node.lineno) for alias in node.names)
    elif isinstance(node, ast.ImportFrom):
      assert node.level == 0, f"line {node.lineno}: relative import"
      package = str(node.module).partition(".")[0] in PACKAGES  # `from tasks import base` imports tasks.base
      names = [f"{node.module}.{alias.name}" for alias in node.names] if package else [str(node.module)]
      yield from (Import(name, node.lineno) for name in names)


def is_allowed(module: str, allowed: set[str]) -> bool:
  parents = {module.rsplit(".", depth)[0] for depth in range(module.count(".") + 1)}
  return module.partition(".")[0] in sys.stdlib_module_names or bool(parents & allowed)


def test_imports_run_one_way() -> None:
  wrong = []
  for path in SHIPPED:
    allowed = next(names for pattern, names in IMPORTS.items() if re.fullmatch(pattern, path))
    found = imports(*ast.walk(tree(path)))
    wrong += [(path, *own) for own in found if not is_allowed(own.module, allowed)]
  assert wrong == []


def test_only_one_file_knows_torch_distributed() -> None:
  knows = [path for path in SHIPPED if "torch.distributed" in (ROOT / path).read_text()]
  assert knows == ["gpurobot/device/distributed.py"]


def sizes(path: str) -> Iterator[tuple[str, int, int]]:
  """Yield (place, size, limit) of the file, and of each function in it."""
  yield path, len((ROOT / path).read_text().splitlines()), MAX_FILE
  for node in ast.walk(tree(path)):
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
      place = f"{path}:{node.name}"
      docstring = node.body[0] if ast.get_docstring(node) else None
      shown = 0 if docstring is None else int(docstring.end_lineno or 0) - docstring.lineno + 1
      yield place, int(node.end_lineno or 0) - node.lineno + 1 - shown, MAX_FUNCTION
      own = {"self", "cls"}
      arguments = [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs]
      yield f"{place}()", len([a for a in arguments if a.arg not in own]), MAX_PARAMETERS


def test_nothing_is_long_without_a_reason() -> None:
  long = [own for path in SOURCES for own in sizes(path) if own[1] > own[2]]
  assert [own for own in long if not (own[0] in LONGER and own[1] <= 2 * own[2])] == []
  assert set(LONGER) <= {place for place, *_ in long}


def test_no_path_of_one_machine() -> None:
  machine = re.compile(r"(?<![\w.}$-])/(?:home|root|tmp|work|opt|mnt|Users)/[\w.]|file:/{2}")
  texts = {path: (ROOT / path).read_bytes().decode(errors="ignore") for path in TRACKED}
  assert [(path, found.group()) for path, text in texts.items() for found in machine.finditer(text)] == []


def test_constraints_pin_every_dependency_within_its_range() -> None:
  project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
  lines = (ROOT / "constraints.txt").read_text().splitlines()
  pinned = dict(line.split("==") for line in lines if not line.startswith("#"))
  extras = [line for extra in project["optional-dependencies"].values() for line in extra]
  for requirement in map(Requirement, [*project["dependencies"], *extras]):
    assert pinned[requirement.name] in requirement.specifier, requirement


def dry_run(*arguments: str) -> list[str]:
  environment = {key: value for key, value in os.environ.items() if not key.startswith("MAKE")}
  command = ["make", "--dry-run", "--no-print-directory", *arguments]
  done = subprocess.run(command, cwd=ROOT, env=environment, check=True, capture_output=True, text=True)
  return done.stdout.splitlines()[-1].split()


def test_make_train_passes_every_key_on() -> None:
  keys = {"task=cartpole", "num_envs=512", "seed=3", "ppo.horizon=8"}
  _, program, *passed = dry_run("train", *keys, "PYTHON=python3")
  assert program == "train.py"
  assert set(passed) == keys
