import dataclasses
import os
import subprocess
import sys

import numpy as np
import pytest

from physics import identity, load_model

ROBOT = """
<mujoco>
  <asset>
    <mesh name="tetra" vertex="0 0 0  1 0 0  0 1 0  0 0 1"/>
    <hfield name="hills" nrow="2" ncol="2" size="1 1 1 0.1" elevation="0 0 0 1"/>
  </asset>
  <worldbody>
    <geom type="hfield" hfield="hills" friction="0.8"/>
    <body><joint name="hip"/><geom type="mesh" mesh="tetra" mass="1"/>
      <body name="shank" pos="0 0 1"><joint/><geom size="0.1" mass="0.3"/><site name="tip"/></body></body>
  </worldbody>
  <tendon><fixed name="rope"><joint joint="hip" coef="1"/></fixed></tendon>
  <actuator>
    <motor name="pull" joint="hip"/><motor tendon="rope"/><motor site="tip" gear="1 0 0 0 0 0"/>
  </actuator>
</mujoco>"""


@pytest.fixture(scope="module")
def model():
  return load_model(ROBOT)


def differing(one, other) -> set[str]:
  then, now = (identity(each)["model"] for each in (one, other))
  return {name for name in then if then[name] != now[name]}


def test_names_are_in_order_and_say_what_each_control_drives(model):
  found = identity(model)
  assert found["joint"] == ["hip", "number 1"]
  assert found["control"] == ["pull of joint hip", "number 1 of tendon rope", "number 2 of site tip"]


def test_digests_are_the_same_in_another_folder_and_process(model, tmp_path):
  (tmp_path / "robot.xml").write_text(ROBOT)
  code = "import sys; from physics import *; print(identity(load_model(sys.argv[1])))"
  words = [sys.executable, "-c", code, str(tmp_path / "robot.xml")]
  printed = subprocess.run(
    words, env=os.environ | {"PYTHONHASHSEED": "7"}, check=True, capture_output=True, text=True
  ).stdout
  assert printed.strip() == str(identity(model))


def test_rounding_of_another_machine_is_no_difference(model):
  """Nor are the axes of a mesh that is alike in several directions, which rounding chooses."""
  rng, turned = np.random.default_rng(0), model.geom_quat.copy()
  turned[model.geom_type == 7] = (0, 1, 0, 0)
  numbers = {
    name: value * (1 + 1e-15 * rng.standard_normal(value.shape)) + 1e-17 * np.abs(value).max(initial=0)
    for name, value in vars(model).items()
    if isinstance(value, np.ndarray) and value.dtype == np.float64
  }
  assert differing(model, dataclasses.replace(model, **numbers | {"geom_quat": turned})) == set()


@pytest.mark.parametrize(
  ("old", "new", "fields"),
  [
    ('friction="0.8"', 'friction="0.7"', {"geom_friction"}),
    ('mass="0.3"', 'mass="0.3001"', {"body_mass", "body_inertia"}),
    ('elevation="0 0 0 1"', 'elevation="0 0.5 0 1"', {"hfield_data"}),
    ('0 0 1"/>\n    <hfield', '0 0 1.001"/>\n    <hfield', {"mesh_vert"}),
    ('name="shank" pos="0 0 1"', 'name="shank" pos="0 0 1.001"', {"body_pos"}),
    ("<mujoco>", "<mujoco><option timestep='0.001'/>", {"timestep"}),
  ],
)
def test_a_change_of_the_file_names_its_fields(model, old, new, fields):
  assert ROBOT.count(old) == 1
  assert fields <= differing(model, load_model(ROBOT.replace(old, new)))
