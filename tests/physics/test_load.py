"""Loading: every kind of source gives the same model and stays as it was; what is read, and what is said."""

import dataclasses
import re
import warnings

import mujoco
import numpy as np
import pytest

from physics.load import load_model
from physics.model.model import ACTIVATIONS, Model
from physics.support import UnsupportedModel
from tests.physics.arm import TENDON, arm
from tests.physics.reports import assert_agrees

MJCF = """<mujoco><worldbody>
  <body name="arm" pos="0 0 1"><joint name="hinge" axis="0 1 0" damping="0.1"/><geom size="0.1"/></body>
</worldbody></mujoco>"""
URDF = """<?xml version="1.0"?>
<robot name="pendulum">
  <mujoco><compiler fusestatic="false" discardvisual="false"/></mujoco>
  <link name="base"/>
  <link name="rod">
    <inertial><origin xyz="0 0 -0.2" rpy="0.1 0.2 0.3"/><mass value="2"/>
      <inertia ixx="0.05" iyy="0.04" izz="0.02" ixy="0.001" ixz="0.002" iyz="0.003"/></inertial>
    <visual><geometry><box size="0.1 0.1 0.4"/></geometry></visual>
    <collision><origin xyz="0 0 -0.4"/><geometry><sphere radius="0.05"/></geometry></collision>
  </link>
  <link name="slider">
    <inertial><mass value="0.5"/>
      <inertia ixx="0.01" iyy="0.01" izz="0.01" ixy="0" ixz="0" iyz="0"/></inertial>
    <collision><geometry><cylinder radius="0.1" length="0.2"/></geometry></collision>
  </link>
  <joint name="swing" type="revolute">
    <parent link="base"/><child link="rod"/><origin xyz="0 0 1"/><axis xyz="0 1 0"/>
    <limit lower="-0.5" upper="0.5" effort="10" velocity="5"/><dynamics damping="0.2" friction="0.1"/>
  </joint>
  <joint name="slide" type="prismatic">
    <parent link="rod"/><child link="slider"/><origin xyz="0 0.3 -0.4"/><axis xyz="0 0 1"/>
    <limit lower="-0.1" upper="0.3" effort="10" velocity="5"/>
  </joint>
</robot>"""


def assert_same(one, other):
  for field in dataclasses.fields(Model):
    if field.name not in ("mj", "pairs"):
      np.testing.assert_array_equal(getattr(one, field.name), getattr(other, field.name), err_msg=field.name)


def test_every_kind_of_source_gives_the_same_model(tmp_path):
  path = tmp_path / "arm.xml"
  path.write_text(MJCF)
  expected = load_model(MJCF)
  assert expected.joint_names == ("hinge",)
  for source in (path, str(path), mujoco.MjSpec.from_string(MJCF), mujoco.MjModel.from_xml_string(MJCF)):
    assert_same(load_model(source), expected)


def test_files_may_refer_to_others_beside_them(tmp_path):
  (tmp_path / "parts").mkdir()
  (tmp_path / "parts/arm.xml").write_text(MJCF)
  (tmp_path / "scene.xml").write_text('<mujoco><include file="parts/arm.xml"/></mujoco>')
  assert_same(load_model(tmp_path / "scene.xml"), load_model(MJCF))


def test_absent_files_are_named(tmp_path):
  with pytest.raises(FileNotFoundError, match=r"absent\.xml"):
    load_model(tmp_path / "absent.xml")


@pytest.mark.parametrize("as_file", [False, True])
def test_urdf_is_what_mujocos_compiler_makes_of_it(tmp_path, as_file):
  path = tmp_path / "pendulum.urdf"
  path.write_text(URDF)
  model = load_model(path if as_file else URDF)
  assert model.joint_names == ("swing", "slide")
  assert model.body_mass.tolist()[-2:] == [2.0, 0.5]
  np.testing.assert_array_equal(model.jnt_range, [[-0.5, 0.5], [-0.1, 0.3]])
  assert (model.dof_damping[0], model.dof_frictionloss[0]) == (0.2, 0.1)
  assert_agrees(model)


def test_a_spec_can_be_edited_before_and_after():
  spec = mujoco.MjSpec.from_string(MJCF)
  spec.body("arm").add_body(name="hand", pos=[0, 0, 0.5]).add_geom(size=[0.1, 0, 0])
  before = load_model(spec)
  spec.body("arm").add_body(name="foot").add_geom(size=[0.1, 0, 0])
  assert before.body_names == ("world", "arm", "hand")
  assert load_model(spec).nbody == before.nbody + 1


def test_leaves_the_callers_model_alone():
  mj = mujoco.MjModel.from_xml_string(MJCF)
  mj.opt.integrator, mj.opt.solver = mujoco.mjtIntegrator.mjINT_RK4, mujoco.mjtSolver.mjSOL_CG
  with pytest.warns(UserWarning, match="CG"):
    model = load_model(mj, integrator="Euler")
  assert mj.opt.integrator == mujoco.mjtIntegrator.mjINT_RK4
  assert mj.opt.solver == mujoco.mjtSolver.mjSOL_CG
  assert model.mj.opt.integrator == mujoco.mjtIntegrator.mjINT_EULER
  assert model.mj.opt.solver == mujoco.mjtSolver.mjSOL_NEWTON


def test_later_changes_of_the_callers_model_do_not_reach_in():
  mj = mujoco.MjModel.from_xml_string(MJCF)
  model = load_model(mj)
  mass = model.body_mass[1]
  mj.body_mass[1] *= 2
  assert model.body_mass[1] == model.mj.body_mass[1] == mass


def test_faults_of_a_file_are_the_compilers(tmp_path):
  with pytest.raises(ValueError, match="unrecognized"):
    load_model("<mujoco><nonsense/></mujoco>")
  assert issubclass(UnsupportedModel, ValueError)


@pytest.mark.parametrize(
  ("options", "message"),
  [
    ({"integrator": "euler"}, "integrator='euler': write one of None, 'Euler', 'RK4', 'implicitfast'"),
    ({"unsupported": "ignore"}, "unsupported='ignore': write one of 'error', 'warn'"),
    ({"vary": "body_mass"}, "vary='body_mass': write a list of fields, ['body_mass']"),
  ],
)
def test_options_that_are_no_choice_are_told(options, message):
  with pytest.raises(ValueError, match=re.escape(message)):
    load_model("<mujoco/>", **options)


def test_warns_of_solver_and_sensors():
  sensor = '<sensor><jointpos joint="shoulder"/><user name="mood" dim="2"/></sensor>'
  with warnings.catch_warnings(record=True) as record:
    warnings.simplefilter("always")
    load_model(arm(option='solver="PGS"', extra=sensor))
  assert [str(warning.message) for warning in record] == [
    "the file asks for the PGS solver: Newton finds the same solution",
    "sensor 'mood' stays zero: user is not supported",
  ]


@pytest.mark.parametrize(
  ("impratio", "iterations", "warned"), [(100, 1, True), (10, 1, False), (100, 10, False)]
)
def test_warns_of_contacts_too_stiff_for_few_iterations(impratio, iterations, warned):
  foot = '<body><freejoint/><geom size="0.1" solimp="0.015 1 0.03" priority="1"/></body>'
  option = f'<option impratio="{impratio}" iterations="{iterations}"/>'
  with warnings.catch_warnings(record=True) as record:
    warnings.simplefilter("always")
    load_model(f"<mujoco>{option}<worldbody><geom type='plane' size='1 1 1'/>{foot}</worldbody></mujoco>")
  message = (
    "contacts are 1e+06 times as stiff as their bodies are heavy (impratio, solimp), which float32 may "
  )
  assert [str(warning.message).startswith(message) for warning in record] == [True] * warned


def test_fields_are_mujocos_and_read_only():
  model = load_model(arm())
  for field in dataclasses.fields(Model):
    value = getattr(model, field.name)
    if isinstance(value, np.ndarray):
      assert value.dtype in (np.float64, np.int64, np.bool_), field.name
      with pytest.raises(ValueError, match="read-only"):
        value[...] = 0
    if hasattr(model.mj, field.name):
      np.testing.assert_array_equal(value, getattr(model.mj, field.name), err_msg=field.name)


@pytest.mark.parametrize(
  ("flag", "field"),
  [
    ("gravity", "gravity"),
    ("spring", "jnt_stiffness"),
    ("damper", "dof_damping"),
    ("clampctrl", "actuator_ctrllimited"),
  ],
)
def test_folds_disable_flags(flag, field):
  joint = 'stiffness="2" damping="3"'
  assert getattr(load_model(arm(joint=joint)), field).any()
  assert not getattr(load_model(arm(joint=joint, flag=f'{flag}="disable"')), field).any()


@pytest.mark.parametrize(
  ("flag", "fields"),
  [
    ("contact", ["contact_enabled"]),
    ("limit", ["limit_enabled"]),
    ("frictionloss", ["frictionloss_enabled"]),
    ("constraint", ["contact_enabled", "limit_enabled", "frictionloss_enabled"]),
    ("actuation", ["actuation_enabled"]),
    ('spring="disable" damper', ["passive_enabled"]),
    ("eulerdamp", ["eulerdamp"]),
    ("warmstart", ["warmstart_enabled"]),
    ("refsafe", ["refsafe"]),
  ],
)
def test_keeps_the_other_flags(flag, fields):
  names = [field.name for field in dataclasses.fields(Model) if field.type is bool]
  off = load_model(arm(flag=f'{flag}="disable"'))
  assert [name for name in names if getattr(off, name) != getattr(load_model(arm()), name)] == fields
  assert bool(off.pairs) == off.contact_enabled


def test_adds_what_actuators_add_to_joints_and_tendons():
  model = load_model(
    arm(
      joint='damping="1 2" armature="3"',
      extra=TENDON.format('damping="4"'),
      motor='damping="0.5" armature="0.25"',
      actuator="""<motor jointinparent="shoulder" damping="1 1 1"/>
        <motor tendon="cord" gear="2" damping="1" armature="0.5"/>""",
    )
  )
  assert (model.dof_damping.tolist(), model.dof_armature.tolist()) == ([1 + 9 * 0.5 + 1], [3 + 9 * 0.25])
  assert (model.dof_dampingpoly.tolist(), model.tendon_damping.tolist()) == ([[2 + 1, 1]], [4 + 4])
  assert model.tendon_armature.tolist() == [4 * 0.5]


def test_knows_which_actuators_are_off_and_where_activations_are():
  actuators = """
    <intvelocity joint="shoulder" group="3"/> <position joint="shoulder" group="31"/>
    <general joint="shoulder" biastype="affine" biasprm="0 -2"/>
    <pid joint="shoulder" ki="1" slewmax="1"/> <pid joint="shoulder" ki="1"/>
    <dcmotor joint="shoulder" resistance="1" motorconst="1" inductance="1" lugre="1 1 1 1 1"/>
  """
  model = load_model(arm(option='actuatorgroupdisable="3"', actuator=actuators))
  assert np.flatnonzero(~model.actuator_enabled).tolist() == [1]
  assert np.flatnonzero(model.actuator_is_servo).tolist() == [1, 2]
  places = [dict(zip(ACTIVATIONS, row, strict=True)) for row in model.actuator_slots.tolist()]
  assert [{name: k for name, k in place.items() if k >= 0} for place in places] == [
    {},
    {"filtered": 0},
    {},
    {},
    {"setpoint": 0, "integral": 1},
    {"integral": 0},
    {"bristle": 0, "current": 1},
  ]


def test_a_large_model_is_told_before_its_kernel_is_built():
  row = '<geom size=".01" pos="{} 0 0"/>'
  wide = "".join(row.format(index) for index in range(3001))
  moving = '<body><freejoint/><geom size=".1" contype="0" conaffinity="0"/></body>'
  size = "6 degrees of freedom, 21 entries of the mass matrix and 3002 geoms"
  with pytest.warns(UserWarning, match=f"MJCF: a model of {size}: to build its kernel"):
    model = load_model(f"<mujoco><worldbody>{wide}{moving}</worldbody></mujoco>")
  assert model.pairs == ()


def test_many_joints_on_few_bodies_are_large_and_many_bodies_are_not():
  def chain(links, joints):
    axes = "".join(f'<joint axis="{axis}"/>' for axis in ("0 1 0", "1 0 0", "0 0 1")[:joints])
    link = f'<body pos="0 0 .1">{axes}<geom size=".01" contype="0" conaffinity="0"/>'
    return f"<mujoco><worldbody>{link * links}{'</body>' * links}</worldbody></mujoco>"

  with pytest.warns(UserWarning, match="a model of 57 degrees of freedom, 1653 entries of the mass matrix"):
    load_model(chain(19, joints=3))
  bodies = '<body><freejoint/><geom size=".1" contype="0" conaffinity="0"/></body>' * 50
  with warnings.catch_warnings():
    warnings.simplefilter("error")
    load_model(chain(60, joints=1))  # loops over its bodies are short
    load_model(f"<mujoco><worldbody>{bodies}</worldbody></mujoco>")


def test_frames_that_coincide_but_for_rounding_are_one_as_in_mujoco():
  """MuJoCo computes with the body's frame there, and 2e-9 m are more than float64 rounds."""
  inertial = '<inertial mass="3" pos="2e-9 0 1e-9" diaginertia="1 1 1"/>'
  geoms = '<geom size="0.1" pos="1e-9 0 0"/><geom size="0.1" pos="0.1 0 0"/>'
  geoms += '<site pos="0 1e-9 0" quat="1 1e-9 0 0"/>'
  model = load_model(f"<mujoco><worldbody><body><freejoint/>{inertial}{geoms}</body></worldbody></mujoco>")
  assert model.mj.body_ipos[1].any()
  assert not model.body_ipos[1].any()
  assert not model.geom_pos[0].any()
  assert not model.site_pos[0].any()
  assert model.geom_pos[1].tolist() == [0.1, 0.0, 0.0]
  assert_agrees(model)


def test_hulls_that_take_minutes_are_named(monkeypatch):
  monkeypatch.setattr("physics.load.MANY_VERTICES", 10)
  vertices = " ".join(map(str, np.random.default_rng(0).normal(size=60)))
  mesh = f'<asset><mesh name="rock" vertex="{vertices}"/></asset>'
  body = '<body><freejoint/><geom type="mesh" mesh="rock" {}/></body>'
  with pytest.warns(UserWarning, match=r"mesh 'rock' has \d+ of \d+ vertices of hulls.*write maxhullvert="):
    load_model(f"<mujoco>{mesh}<worldbody>{body.format('')}</worldbody></mujoco>")
  with warnings.catch_warnings():
    warnings.simplefilter("error")
    unseen = 'contype="0" conaffinity="0"'
    load_model(f"<mujoco>{mesh}<worldbody>{body.format(unseen)}</worldbody></mujoco>")


def test_a_floor_may_count_as_an_ellipsoid_in_a_fluid():
  """MuJoCo's compiler makes its added mass nan; the default class of a file may ask for it."""
  model = load_model(
    """<mujoco><option density="1"/><default><geom fluidshape="ellipsoid"/></default><worldbody>
    <geom type="plane" size="1 1 1"/><body pos="0 0 1"><freejoint/><geom size="0.1"/></body></worldbody>
    </mujoco>"""
  )
  assert np.isfinite(model.geom_fluid).all()
