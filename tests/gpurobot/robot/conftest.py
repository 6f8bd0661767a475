import pytest

from tests.gpurobot.robot.exports import write_export


@pytest.fixture(scope="session")
def standing(tmp_path_factory):
  """An export of a quadruped with the action zero, which sees two observations."""
  folder = tmp_path_factory.mktemp("standing")
  write_export(folder, "quadruped", see_velocity=False, history_policy=2)
  return folder
