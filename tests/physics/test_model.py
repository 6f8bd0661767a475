"""Loading: what is read, what is refused and how, and the pairs of geoms against MuJoCo's own contacts."""

import dataclasses
import warnings

import mujoco
import numpy as np
import pytest

from physics.load import load_model
from physics.model import ACTIVATIONS, Model
from physics.support import UnsupportedModel

ARM = """
<mujoco>
  <option {option}><flag {flag}/></option>
  <worldbody>
    <site name="fixed"/>
    <geom name="floor" type="plane" size="1 1 1" {floor}/>
    <body name="upper" pos="0 0 1" {body}>
      <joint name="shoulder" axis="0 1 0" {joint}/>
      <geom name="rod" type="{shape}" size="0.05 0.15 0.05" {geom}/>
      <site name="tip"/>
    </body>
  </worldbody>
  {extra}
  <actuator><motor name="drive" joint="shoulder" gear="3" ctrlrange="-2 2" {motor}/>{actuator}</actuator>
</mujoco>
"""


def arm(**parts):
  """Return a one-joint arm above a floor, with XML put into the places that `parts` names."""
  places = ("option", "flag", "floor", "body", "joint", "geom", "extra", "motor", "actuator")
  return ARM.format(**dict.fromkeys(places, "") | {"shape": "capsule"} | parts)


TENDON = '<tendon><fixed name="cord" {}><joint joint="shoulder" coef="1"/></fixed></tendon>'
REFUSED = {
  "implicit": (arm(option='integrator="implicit"'), "option", "integrator implicit"),
  "discrete": (arm(option='integrator="discrete"'), "option", "integrator discrete"),
  "noslip": (arm(option='noslip_iterations="3"'), "option", "noslip"),
  "override": (arm(flag='override="enable"'), "option", "flag override"),
  "sleep": (arm(flag='sleep="enable"'), "option", "flag sleep"),
  "diagexact": (arm(flag='diagexact="enable"'), "option", "flag diagexact"),
  "speculative": (arm(flag='speculative="enable"'), "option", "flag speculative"),
  "fluid shape": (
    arm(option='density="1"', geom='fluidshape="ellipsoid"'),
    "geom 'rod'",
    "fluidshape ellipsoid",
  ),
  "yield": (arm(joint='stiffness="1" springyield="0.1"'), "joint 'shoulder'", "springyield"),
  "limit": (arm(joint='range="-9 9" solreflimit="0.02 -1"'), "joint 'shoulder'", "solreflimit"),
  "friction": (arm(joint='frictionloss="1" solreffriction="-9 1"'), "joint 'shoulder'", "solreffriction"),
  "adhesion": (arm(geom='adhesion="1"'), "geom 'rod'", "adhesion"),
  "surface": (arm(floor='surfacevel="1 0 0 0 0 0"'), "geom 'floor'", "surfacevel"),
  "shapes": (
    arm(shape="ellipsoid", extra='<worldbody><geom name="ball" size="0.1"/></worldbody>'),
    "geom 'ball' against geom 'rod'",
    "collision of sphere and ellipsoid",
  ),
  "solref": (arm(geom='solref="0.02 -3"'), "geom 'floor' against geom 'rod'", "solref of mixed signs"),
  "weld": (
    arm(extra='<equality><weld name="glue" body1="upper" solref="1 -1"/></equality>'),
    "equality 'glue'",
    "solref of mixed signs",
  ),
  "spatial": (
    arm(extra='<tendon><spatial name="rope"><site site="fixed"/><site site="tip"/></spatial></tendon>'),
    "tendon 'rope'",
    "a spatial tendon",
  ),
  "tendon limit": (
    arm(extra=TENDON.format('range="0 1" solreflimit="1 -1"')),
    "tendon 'cord'",
    "solreflimit of mixed signs",
  ),
  "tendon friction": (
    arm(extra=TENDON.format('frictionloss="1" solreffriction="1 -1"')),
    "tendon 'cord'",
    "solreffriction of mixed signs",
  ),
  "tendon armature": (arm(extra=TENDON.format('armature="1"')), "tendon 'cord'", "armature"),
  "muscle": (
    arm(actuator='<muscle name="biceps" joint="shoulder" lengthrange="0 1"/>'),
    "actuator 'biceps'",
    "muscle",
  ),
  "crank": (
    arm(actuator='<motor name="piston" cranksite="tip" slidersite="fixed" cranklength="1"/>'),
    "actuator 'piston'",
    "trntype slidercrank",
  ),
  "half a motor": (
    arm(actuator='<general name="half" joint="shoulder" biastype="dcmotor"/>'),
    "actuator 'half'",
    "dcmotor as gaintype or biastype alone",
  ),
  "rotor on a tendon": (
    arm(extra=TENDON.format(""), actuator='<motor name="pull" tendon="cord" armature="0.1"/>'),
    "actuator 'pull'",
    "armature on a tendon",
  ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_refuses_in_one_line_that_names_element_and_feature(case):
  xml, element, feature = REFUSED[case]
  with pytest.raises(UnsupportedModel) as error:
    load_model(xml)
  message = str(error.value)
  assert message.startswith(f"{element}: ")
  assert feature in message
  assert message.endswith(" is not supported")
  assert "\n" not in message


@pytest.mark.parametrize(
  "xml",
  [
    arm(shape="box", geom='contype="0" conaffinity="0"'),
    arm(geom='condim="6"', floor='priority="1"'),
    arm(extra=TENDON.format("")),
    arm(extra='<equality><weld body1="upper"/></equality>', flag='equality="disable"'),
    arm(flag='energy="enable" island="disable" midphase="disable" multiccd="disable"'),
    arm(flag='contact="disable"', geom='condim="4"'),
  ],
  ids=["unseen box", "outranked condim", "idle tendon", "disabled weld", "harmless flags", "no contacts"],
)
def test_accepts_what_changes_no_motion(xml):
  with warnings.catch_warnings():
    warnings.simplefilter("error")
    assert load_model(xml).nv == 1


def test_warns_of_solver_and_sensors():
  sensor = '<sensor><jointpos joint="shoulder"/><user name="mood" dim="2"/></sensor>'
  with warnings.catch_warnings(record=True) as record:
    warnings.simplefilter("always")
    load_model(arm(option='solver="PGS"', extra=sensor))
  assert [str(warning.message) for warning in record] == [
    "the file asks for the PGS solver: Newton finds the same solution",
    "sensor 'mood' stays zero: user is not supported",
  ]


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


def test_looks_up_names_and_suggests_the_nearest():
  model = load_model(arm())
  ids = model.body_id("upper"), model.joint_id("shoulder"), model.geom_id("rod"), model.actuator_id("drive")
  assert ids == (1, 0, 1, 0)
  with pytest.raises(KeyError, match=r"no joint 'sholder'; the nearest is 'shoulder'"):
    model.joint_id("sholder")
  with pytest.raises(KeyError, match="no actuator 'drive'"):
    load_model('<mujoco><worldbody><geom size="1"/></worldbody></mujoco>').actuator_id("drive")


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
      actuator='<motor jointinparent="shoulder" damping="1 1 1"/><motor tendon="cord" gear="2" damping="1"/>',
    )
  )
  assert (model.dof_damping.tolist(), model.dof_armature.tolist()) == ([1 + 9 * 0.5 + 1], [3 + 9 * 0.25])
  assert (model.dof_dampingpoly.tolist(), model.tendon_damping.tolist()) == ([[2 + 1, 1]], [4 + 4])


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


def heap(rng):
  """Return a model whose geoms all overlap: every pair that can collide is in contact at qpos0."""

  def numbers(low, high, count):
    return " ".join(f"{x:.6f}" for x in rng.uniform(low, high, count))

  def geom(name):
    direct = f"-{numbers(10, 100, 1)} -{numbers(1, 9, 1)}"
    solref = ("0.001 1", numbers(0.005, 0.1, 2), direct)[rng.integers(3)]
    solimp = " ".join(
      numbers(low, high, 1) for low, high in ((-0.1, 1), (0.5, 1.1), (0, 0.1), (0, 1), (0.5, 3))
    )
    shape = ('type="sphere" size="1"', 'type="capsule" size="1 0.4"')[rng.integers(2)]
    return f"""<geom name="{name}" {shape} pos="{numbers(-0.2, 0.2, 3)}" contype="{rng.integers(4)}"
      conaffinity="{rng.integers(4)}" condim="{rng.choice([1, 3])}" friction="{numbers(0, 2, 3)}"
      solref="{solref}" solmix="{rng.choice([0, 0, 1, 2.5])}" priority="{rng.integers(2)}" solimp="{solimp}"
      margin="{numbers(0, 0.1, 1)}" gap="{numbers(0, 0.1, 1)}"/>"""

  def body(name, inside=""):
    joint = ("<freejoint/>" if name in "ab" else "<joint/>") if name != "e" else ""
    return f'<body name="{name}">{joint}{geom(name + "1")}{geom(name + "2")}{inside}</body>'

  tree = body("a", body("c", body("e", body("d")))) + body("b") + geom("ground")
  floor = '<geom name="floor" type="plane" size="1 1 1" solmix="0" condim="1" margin="0.3"/>'
  pairs = f"""<pair geom1="d1" geom2="c2" condim="1" margin="0.1" gap="0.2"/>
    <pair geom1="a1" geom2="b1" friction="{numbers(0, 1, 5)}" solref="-100 -10" solimp="0.5 2 0.01 0.3 4"/>
    <pair geom1="ground" geom2="b2" solref="0.001 0.5"/> <exclude body1="a" body2="b"/>"""
  disabled = " ".join(f'{flag}="disable"' for flag in ("filterparent", "refsafe") if rng.random() < 0.3)
  return f"""<mujoco><option timestep="0.01"><flag {disabled}/></option><worldbody>{floor}{tree}</worldbody>
    <contact>{pairs}</contact></mujoco>"""


@pytest.mark.parametrize("seed", range(20))
def test_pairs_are_mujocos_contacts(seed):
  model = load_model(heap(np.random.default_rng(seed)))
  data = mujoco.MjData(model.mj)
  mujoco.mj_forward(model.mj, data)
  contacts = {tuple(contact.geom.tolist()): contact for contact in data.contact}
  assert {(pair.geom1, pair.geom2) for pair in model.pairs} == set(contacts)
  assert len(model.pairs) > 5
  for pair in model.pairs:
    contact = contacts[pair.geom1, pair.geom2]
    assert pair.condim == contact.dim
    assert pair.margin == pytest.approx(contact.includemargin, abs=1e-15)
    np.testing.assert_allclose(pair.friction, contact.friction, rtol=1e-14)
    np.testing.assert_array_equal(pair.solreffriction, contact.solreffriction)
    np.testing.assert_allclose(
      data.efc_KBIP[contact.efc_address][:3],
      (*stiffness_and_damping(model, pair), smooth_step(abs(contact.dist - pair.margin), pair.solimp)),
      rtol=1e-12,
    )


def stiffness_and_damping(model, pair):
  """Return K, B of the reference acceleration (MuJoCo's modeling chapter, "Reference")."""
  dmax = pair.solimp[1]
  if pair.solref[0] > 0:
    time = max(pair.solref[0], 2 * model.timestep) if model.refsafe else pair.solref[0]
    return 1 / (dmax * time * pair.solref[1]) ** 2, 2 / (dmax * time)
  return -pair.solref[0] / dmax**2, -pair.solref[1] / dmax


def smooth_step(distance, solimp):
  """Return the impedance at `distance` [m] (MuJoCo's modeling chapter, "Impedance")."""
  d0, dmax, width, midpoint, power = solimp
  x = min(distance / width, 1) if width > 0 else 1
  low, high = x**power / midpoint ** (power - 1), 1 - (1 - x) ** power / (1 - midpoint) ** (power - 1)
  return d0 + (low if x <= midpoint else high) * (dmax - d0)


@pytest.mark.parametrize("explicit", [False, True])
def test_margin_and_gap_are_mujocos(explicit):
  pair = '<contact><pair geom1="rod" geom2="floor" margin="0.25" gap="0.125"/></contact>'
  geoms = {"floor": 'margin="0.25" gap="0.5"', "geom": 'margin="0.125" gap="0.25"'}
  model = load_model(arm(extra=pair) if explicit else arm(**geoms))
  margin, gap = (0.25, 0.125) if explicit else (0.375, 0.75)
  assert [(pair.margin, pair.gap) for pair in model.pairs] == [(margin, gap)]
  data = mujoco.MjData(model.mj)
  for distance, detected, pushed in ((margin, 1, 1), (margin + gap, 1, 0), (margin + gap + 0.01, 0, 0)):
    model.mj.body_pos[1, 2] = 0.2 - 1e-9 + distance
    mujoco.mj_forward(model.mj, data)
    assert (data.ncon > 0, data.nefc > 0) == (detected, pushed)
