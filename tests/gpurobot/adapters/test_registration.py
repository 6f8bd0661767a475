import subprocess
import sys

import gymnasium
import pytest

import tasks
from gpurobot.adapters import registration


@pytest.mark.parametrize(
  ("task", "name"),
  [
    ("ant", "Ant-v0"),
    ("quadruped_rough", "QuadrupedRough-v0"),
    ("gym/Walker2d-v5", "GymWalker2d-v5"),
    ("dm/humanoid_CMU_run", "DmHumanoidCMURun-v0"),
  ],
)
def test_names(task, name):
  assert registration.name(task) == name


def test_every_task_has_a_name():
  ours = [spec for spec in gymnasium.registry.values() if spec.namespace == registration.NAMESPACE]
  assert {spec.kwargs.get("task") for spec in ours} == {None, *tasks.available()}


LOOK = "import importlib.util; importlib.util.find_spec('gymnasium')"  # as libraries do that can do without


@pytest.mark.parametrize(
  "start", ["import gymnasium, gpurobot", f"import gpurobot; {LOOK}; import gymnasium"]
)
def test_the_names_are_there_whichever_is_imported_first(start):
  program = f"{start}; print(gymnasium.spec('gpurobot/GymAnt-v5').kwargs)"
  done = subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, text=True)
  assert done.stdout == "{'task': 'gym/Ant-v5'}\n"


def test_the_names_cost_no_import_of_a_library():
  """torch reads its settings when it is loaded, after `import gpurobot` has made them."""
  program = "import sys, gpurobot; print({'gymnasium', 'torch', 'warp', 'mujoco'} & {*sys.modules})"
  done = subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, text=True)
  assert done.stdout.strip() == "set()"
