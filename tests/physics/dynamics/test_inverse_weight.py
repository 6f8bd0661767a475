"""Inverse inertia in the reference pose, on plain numbers, against MuJoCo's compiler."""

import numpy as np
import pytest

from physics.dynamics.inverse_weight import inverse_weights
from physics.load import load_model
from tests.physics.conftest import load

SLIDES = """<mujoco><worldbody><body><joint type="slide" axis="1 0 0" armature="0.3"/>
  <joint type="slide" axis="0 1 0"/><joint type="slide" axis="0 0 1"/><geom size="0.1"/></body>
  </worldbody></mujoco>"""


@pytest.mark.parametrize("name", ["self_contact", "springs", "free_bodies", "gymnasium/ant", "slides"])
def test_weights_are_the_compilers(name):
  model = load_model(SLIDES) if name == "slides" else load(name)
  for field, found in inverse_weights(model).items():
    np.testing.assert_allclose(found.astype(float), getattr(model, field), rtol=1e-9, err_msg=field)
