import subprocess
import sys

import gymnasium
import pytest

import tasks
from gpurobot.adapters import registration


def test_names():
  found = [registration.name(task) for task in ("quadruped_rough", "gym/Walker2d-v5", "dm/humanoid_CMU_run")]
  assert found == ["QuadrupedRough-v0", "GymWalker2d-v5", "DmHumanoidCMURun-v0"]


def test_every_task_has_a_name():
  ours = [spec for spec in gymnasium.registry.values() if spec.namespace == registration.NAMESPACE]
  assert {spec.kwargs.get("task") for spec in ours} == {None, *tasks.available()}


LOOK = "import importlib.util; importlib.util.find_spec('gymnasium')"  # as libraries do that can do without


ALONE = "import sys, gpurobot; assert not {'gymnasium', 'torch', 'warp', 'mujoco'} & {*sys.modules}"


@pytest.mark.parametrize("start", ["import gymnasium, gpurobot", f"{ALONE}; {LOOK}; import gymnasium"])
def test_the_names_are_there_whichever_is_imported_first_and_cost_no_import(start):
  """torch reads its settings when it is loaded, after `import gpurobot` has made them."""
  program = f"{start}; print(gymnasium.spec('gpurobot/GymAnt-v5').kwargs)"
  done = subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, text=True)
  assert done.stdout == "{'task': 'gym/Ant-v5'}\n"
