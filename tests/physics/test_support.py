"""Refused models with their messages, and accepted ones that say more than the motion needs."""

import warnings

import mujoco
import pytest

from physics.load import load_model
from physics.support import UnsupportedModel
from tests.physics.arm import TENDON, arm
from tests.physics.reports import assert_agrees

ROPE = '<tendon><spatial name="rope" {}><site site="fixed"/>{}</spatial></tendon>'
FILM = """<worldbody><camera name="film" mode="trackcom"/></worldbody>
  <sensor><framepos objtype="camera" objname="film"/></sensor>"""
PAIR = '<contact><pair geom1="floor" geom2="ball" {}/></contact>'
REFUSED = {
  "implicit": (arm(option='integrator="implicit"'), "option", "integrator implicit"),
  "discrete": (arm(option='integrator="discrete"'), "option", "integrator discrete"),
  "asleep": (
    arm(
      flag='sleep="enable"',
      extra='<worldbody><body name="cup" sleep="init"><freejoint/>'
      '<geom size="0.1" contype="0" conaffinity="0"/></body></worldbody>',
    ),
    "body 'cup'",
    "sleep init",
  ),
  "diagexact": (arm(flag='diagexact="enable"'), "option", "flag diagexact"),
  "speculative": (arm(flag='speculative="enable"'), "option", "flag speculative"),
  "side": (
    arm(shape="cylinder", extra=ROPE.format("", '<geom geom="rod" sidesite="fixed"/><site site="tip"/>')),
    "tendon 'rope'",
    "a side site on another body",
  ),
  "half a motor": (
    arm(actuator='<general name="half" joint="shoulder" biastype="dcmotor"/>'),
    "actuator 'half'",
    "dcmotor as gaintype or biastype alone",
  ),
  "undriven motor": (
    arm(
      actuator='<general name="it" joint="shoulder" dyntype="filter" gaintype="dcmotor" biastype="dcmotor"/>'
    ),
    "actuator 'it'",
    "gaintype dcmotor with dyntype filter",
  ),
}


NEEDED = {"implicit", "discrete"}  # the rest of such a model cannot do without


@pytest.mark.parametrize("case", REFUSED)
def test_refuses_in_one_line_that_names_element_and_feature(case):
  xml, element, feature = REFUSED[case]
  with pytest.raises(UnsupportedModel) as error:
    load_model(xml)
  message = str(error.value)
  assert message.startswith(f"MJCF: {element}: ")  # the text; a file is named
  assert feature in message
  assert message.endswith(" is not supported")
  assert "\n" not in message
  if case in NEEDED:
    with pytest.raises(UnsupportedModel):
      load_model(xml, unsupported="warn")


@pytest.mark.parametrize("case", sorted({*REFUSED} - NEEDED))
def test_leaves_out_on_request_what_the_rest_can_do_without(case):
  xml, element, feature = REFUSED[case]
  with pytest.warns(UserWarning, match=f"MJCF: {element}: .*{feature}.* is not supported and left out"):
    model = load_model(xml, unsupported="warn")
  assert {part.partition(": ")[0] for part in model.left_out} == {element}
  assert_agrees(model)


@pytest.mark.parametrize("unsupported", ["error", "warn"])
def test_bodies_that_could_fall_asleep_stay_awake(unsupported):
  ball = '<body pos="0 0 0.1"><freejoint/><geom size="0.1"/></body>'
  with pytest.warns(UserWarning, match="the flag sleep has no effect"):
    model = load_model(
      f"""<mujoco><option><flag sleep="enable"/></option>
      <worldbody><geom type="plane" size="1 1 1"/>{ball}</worldbody></mujoco>""",
      unsupported=unsupported,
    )
  data = mujoco.MjData(model.mj)
  mujoco.mj_step(model.mj, data, 1000)
  assert data.tree_awake.tolist() == [1]  # in MuJoCo C, with which the engine is compared
  assert load_model(model.mj).mj.opt.enableflags == 0


def test_what_does_not_collide_does_not_collide_in_mujocos_model_either():
  body = '<body pos="0 0 {}"><freejoint/><geom name="{}" {}/></body>'
  xml = f"""<mujoco><asset><mesh name="stone" vertex="0 0 0 .4 0 0 0 .4 0 0 0 .4"/></asset><worldbody>
    <geom name="floor" type="plane" size="1 1 1"/>{body.format(0.1, "stone", 'type="sdf" mesh="stone"')}
    {body.format(0.1, "ball", 'size="0.2"')}</worldbody></mujoco>"""
  with pytest.warns(UserWarning, match="collision of .* and sdf is not supported and left out"):
    model = load_model(xml, unsupported="warn")
  data = mujoco.MjData(model.mj)
  mujoco.mj_forward(model.mj, data)
  pairs = [(pair.geom1, pair.geom2) for pair in model.pairs]
  assert [tuple(contact.geom.tolist()) for contact in data.contact] == pairs
  assert pairs == [(model.geom_id("floor"), model.geom_id("ball"))]


def test_pairs_of_the_same_shapes_are_told_once():
  stones = '<body pos="0 0 1"><freejoint/><geom type="sdf" mesh="stone"/></body>' * 4
  xml = f"""<mujoco><asset><mesh name="stone" vertex="0 0 0 .4 0 0 0 .4 0 0 0 .4"/></asset>
    <worldbody><geom name="floor" type="plane" size="1 1 1"/>{stones}</worldbody></mujoco>"""
  with pytest.warns(UserWarning, match="sdf is not supported and left out") as notes:
    model = load_model(xml, unsupported="warn")
  assert [str(note.message).split(" is not")[0] for note in notes] == [f"MJCF: {x}" for x in model.left_out]
  assert model.left_out == (
    "geom 'floor' against geom 1 and 3 more: collision of plane and sdf",
    "geom 1 against geom 2 and 5 more: collision of sdf and sdf",
  )


BALL = """<mujoco><option cone="elliptic"/><worldbody><geom name="floor" type="plane" size="1 1 1" {}/>
  <body pos="0 0 0.1"><freejoint/><geom name="ball" size="0.1"/></body></worldbody>{}</mujoco>"""
MIXED = {
  "limit": (arm(joint='range="-9 9" solreflimit="0.02 -1"'), "joint 'shoulder': solreflimit"),
  "friction": (arm(joint='frictionloss="1" solreffriction="-9 1"'), "joint 'shoulder': solreffriction"),
  "contact": (BALL.format('solref="0.05 -3"', ""), "geom 'floor' against geom 'ball': solref"),
  "pair": (
    BALL.format("", PAIR.format('solref="0.05 0.7" solreffriction="-9 1"')),
    "geom 'floor' against geom 'ball': solreffriction",
  ),
  "weld": (
    arm(extra='<equality><weld name="glue" body1="upper" solref="1 -1"/></equality>'),
    "equality 'glue': solref",
  ),
  "tendon limit": (arm(extra=TENDON.format('range="0 1" solreflimit="1 -1"')), "tendon 'cord': solreflimit"),
  "tendon friction": (
    arm(extra=TENDON.format('frictionloss="1" solreffriction="1 -1"')),
    "tendon 'cord': solreffriction",
  ),
}


@pytest.mark.parametrize("case", MIXED)
def test_replaces_a_solref_of_mixed_signs_as_mujoco_does_and_says_so(case):
  xml, what = MIXED[case]
  with pytest.warns(UserWarning, match=f"{what} of mixed signs: MuJoCo's default replaces it"):
    model = load_model(xml)
  assert_agrees(model)


@pytest.mark.parametrize(
  ("xml", "message"),
  [
    (arm(option='timestep="0"'), "option: timestep=0 is not positive: write one, such as 0.005"),
    (arm(option='impratio="0"'), "option: impratio=0 is not positive: write one, such as 1"),
    (arm(option='ccd_iterations="-1"'), "option: ccd_iterations=-1 is negative: leave it out"),
    (arm(option='density="-2"'), "option: density=-2 is negative: leave it out"),
    # Its cost has no least value; MuJoCo gives an acceleration where its search happens to end.
    (arm(joint='frictionloss="-1"'), "joint 'shoulder': frictionloss=-1 is negative: leave it out"),
    (arm(extra=TENDON.format('frictionloss="-1"')), "tendon 'cord': frictionloss=-1 is negative: leave"),
  ],
)
def test_impossible_numbers_are_refused(xml, message):
  with pytest.raises(ValueError, match=f"MJCF: {message}"):
    load_model(xml)


NEGATIVE = (
  (arm(joint='damping="-1"'), "joint 'shoulder': damping=-1 is negative: it drives the joint"),
  (arm(joint='armature="-0.01"'), "joint 'shoulder': armature=-0.01 is negative: it takes inertia away"),
  (arm(extra=TENDON.format('damping="-2"')), "tendon 'cord': damping=-2 is negative: it drives the tendon"),
  (arm(geom='margin="1" gap="-0.5"'), "geom 'rod': gap=-0.5 is negative: contacts begin so much below"),
)


@pytest.mark.parametrize(("xml", "message"), NEGATIVE)
def test_negative_numbers_that_mujoco_takes_are_told_and_have_its_effect(xml, message):
  with pytest.warns(UserWarning, match=message):
    model = load_model(xml)
  assert_agrees(model)


@pytest.mark.parametrize(
  ("xml", "field", "element"),
  [
    (arm(extra=FILM), "body_mass", "camera 'film'"),
    (arm(option='density="1"', geom='fluidshape="ellipsoid"'), "geom_size", "geom 'rod'"),
    (
      arm(shape="cylinder", extra=ROPE.format("", '<geom geom="rod"/><site site="tip"/>')),
      "tendon_armature",
      "tendon 'rope'",
    ),
  ],
)
def test_refuses_to_vary_what_others_are_derived_from(xml, field, element):
  load_model(xml, vary=["geom_friction"])
  with pytest.raises(UnsupportedModel, match=f"MJCF: {element}: vary='{field}' of"):
    load_model(xml, vary=[field])


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
    model = load_model(xml, unsupported="warn")
  assert (model.nv, model.left_out) == (1, ())
