import subprocess
import sys

import gymnasium
import pytest

import tasks
from gpurobot.adapters import registration


@pytest.mark.parametrize(
  ("task", "name"),
  [("ant", "Ant-v0"), ("quadruped_rough", "QuadrupedRough-v0"), ("gym/Walker2d-v5", "GymWalker2d-v5")],
)
def test_names(task, name):
  assert registration.name(task) == name


def test_every_task_has_a_name():
  ours = [spec for spec in gymnasium.registry.values() if spec.namespace == registration.NAMESPACE]
  assert {spec.kwargs.get("task") for spec in ours} == {None, *tasks.available()}


def test_the_names_cost_no_import_of_torch_or_engine():
  """torch reads its settings when it is loaded, after `import gpurobot` has made them."""
  program = "import sys, gpurobot; print({'torch', 'warp', 'mujoco'} & {*sys.modules})"
  done = subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, text=True)
  assert done.stdout.strip() == "set()"
