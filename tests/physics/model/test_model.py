"""Looking up the elements of a model by their names."""

import pytest

from physics.load import load_model
from tests.physics.arm import arm


def test_looks_up_names_and_suggests_the_nearest():
  model = load_model(arm())
  ids = model.body_id("upper"), model.joint_id("shoulder"), model.geom_id("rod"), model.actuator_id("drive")
  assert ids == (1, 0, 1, 0)
  with pytest.raises(KeyError, match=r"no joint 'sholder'; the nearest is 'shoulder'"):
    model.joint_id("sholder")
  with pytest.raises(KeyError, match="no actuator 'drive'"):
    load_model('<mujoco><worldbody><geom size="1"/></worldbody></mujoco>').actuator_id("drive")
