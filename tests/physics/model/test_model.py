"""The fields of a model: their shapes, units and types; looking elements up by their names."""

import itertools

import numpy as np
import pytest

from physics.load import load_model
from physics.model.model import Bools, Floats, Ints, Model
from tests.physics.arm import arm
from tests.physics.conftest import CASES, load
from tests.physics.declared import declared

FIELDS = declared(Model, int, float, bool)
TYPES = {Floats: np.float64, Ints: np.int64, Bools: np.bool_}


@pytest.mark.parametrize("name", CASES)
def test_arrays_are_as_declared(name):
  model = load(name)
  for field, declaration in FIELDS.items():
    value = getattr(model, field)
    if declaration.kind in TYPES:
      assert value.shape == declaration.shape_in(model.mj), field
      assert value.dtype == TYPES[declaration.kind], field
    elif field.endswith("_names"):
      assert (len(value),) == declaration.shape_in(model.mj), field


def test_no_size_is_taken_for_another():
  """The models tell every two sizes apart, or a wrong one could pass."""
  sizes = {size for declaration in FIELDS.values() for size in declaration.shape or () if not size.isdigit()}
  models = [load(name).mj for name in CASES]
  counts = {size: [getattr(mj, size) for mj in models] for size in sizes}
  assert [pair for pair in itertools.combinations(sizes, 2) if counts[pair[0]] == counts[pair[1]]] == []


def test_every_number_has_a_unit():
  numbers = {
    field: declaration.unit for field, declaration in FIELDS.items() if declaration.kind in (Floats, float)
  }
  assert numbers["timestep"] == "s"
  assert [field for field, unit in numbers.items() if unit is None] == []


def test_looks_up_names_and_suggests_the_nearest():
  model = load_model(arm())
  ids = model.body_id("upper"), model.joint_id("shoulder"), model.geom_id("rod"), model.actuator_id("drive")
  assert ids == (1, 0, 1, 0)
  with pytest.raises(KeyError, match=r"no joint 'sholder'; the nearest is 'shoulder'"):
    model.joint_id("sholder")
  with pytest.raises(KeyError, match="no actuator 'drive'"):
    load_model('<mujoco><worldbody><geom size="1"/></worldbody></mujoco>').actuator_id("drive")
