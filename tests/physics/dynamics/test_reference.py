"""Tests of reference points: which models have them, and the digits of light links in float32."""

import numpy as np
import pytest

from physics.dynamics.reference import (
  has_light_links,
  has_thin_bodies,
  has_uneven_objects,
  reference_bodies,
)
from physics.load import load_model
from physics.parity import NumpySimulation, random_states
from physics.parity.reference import converged, reference, relative_error
from physics.smooth import is_refined
from tests.physics.conftest import load

STATES = 32
LINK = (
  "<joint axis='0 {} {}'/><geom type='capsule' fromto='0 0 0 0.1 0 0' size='0.02' mass='0.1' contype='0'/>"
)


def chain(links):
  """Return a chain of equal links whose hinges turn about two axes in turn."""
  starts = (f"<body pos='{0.1 if i else 0} 0 0'>{LINK.format(i % 2, 1 - i % 2)}" for i in range(links))
  return load_model(f"<mujoco><worldbody>{''.join(starts)}{'</body>' * links}</worldbody></mujoco>")


@pytest.mark.parametrize("name", ["gymnasium/ant", "gymnasium/humanoid", "assets/arm", "assets/hand"])
def test_models_without_light_links_keep_their_trees_origins(name):
  model = load(name)
  assert not has_light_links(model)
  references = np.array(reference_bodies(model))
  carried = model.body_treeid[model.body_parentid] >= 0
  assert (references == references[model.body_parentid])[carried].all()


def test_light_links_have_references_of_their_own():
  model = load("light_links")
  of_name = {model.mj.body(body).name: at for body, at in enumerate(reference_bodies(model))}
  own = [model.mj.body(body).name for body, at in enumerate(reference_bodies(model)) if at == body]
  assert {"world", "shoulder", "finger"} <= {*own}
  assert "hand" not in own  # it is welded to the wrist
  assert of_name["hand"] == of_name["wrist"]


def float32_errors(model):
  """Return the relative errors of qacc_smooth and qacc in some states [2, STATES]."""
  states = random_states(converged(model), STATES)
  simulation = NumpySimulation(converged(model), STATES, ("qacc_smooth", "qacc"), np.float32)
  states.write_to(simulation)
  simulation.forward()
  expected = reference(model, states)
  names = ("qacc_smooth", "qacc")
  return [
    relative_error(getattr(simulation, name).numpy().astype(float), getattr(expected, name)) for name in names
  ]


@pytest.mark.parametrize("make", [lambda: load("light_links"), lambda: chain(20)], ids=["fingers", "chain"])
def test_float32_keeps_five_digits_of_light_links(make):
  """About the trees' origins the fingers had 6e-4 in the median, and 20 links 1.2e-4."""
  assert (np.median(float32_errors(make()), axis=1) < 1e-5).all()


SLIDING = """<mujoco><worldbody><body><joint type='slide'/><geom size='0.1' mass='4' contype='0'/>
  <body pos='0 0 0.1'><joint type='slide' axis='1 0 0' {}/><joint axis='0 1 0'/>
  <geom size='0.1' mass='4' contype='0'/></body></body></worldbody></mujoco>"""


def test_a_link_on_a_long_slide_is_light():
  """It turns about its own centre, wherever its slide takes it; about the tree's origin it had up to 2e-5."""
  assert not has_light_links(load_model(SLIDING.format("range='-0.1 0.1'")))
  model = load_model(SLIDING.format(""))
  assert has_light_links(model)
  assert np.max(float32_errors(model)) < 1e-6


def test_a_chain_of_equal_links_is_one_of_light_links_from_twelve_on():
  assert not has_light_links(chain(8))
  assert has_light_links(chain(12))


SLIDES = "".join(f"<joint type='slide' axis='{axis}'/>" for axis in ("1 0 0", "0 1 0", "0 0 1"))
HINGES = SLIDES.replace("slide", "hinge")


def thrown(shift, joints="<freejoint/>"):
  """Return a cube whose centre is `shift` [m] off its body's origin."""
  cube = f"<geom type='box' size='0.02 0.02 0.02' pos='{shift} 0 0'/>"
  return load_model(f"<mujoco><worldbody><body>{joints}{cube}</body></worldbody></mujoco>")


@pytest.mark.parametrize("name", ["gymnasium/ant", "gymnasium/humanoid", "assets/biped"])
def test_robots_that_carry_their_weight_near_their_origin_are_not_refined(name):
  assert not has_uneven_objects(load(name))
  assert not has_thin_bodies(load(name))
  assert not is_refined(load(name))


@pytest.mark.parametrize("joints", ["<freejoint/>", SLIDES + HINGES], ids=("free", "slides"))
def test_objects_are_uneven_by_how_far_off_centre_they_are(joints):
  assert not has_uneven_objects(thrown(0.003, joints))
  assert has_uneven_objects(thrown(0.02, joints))


def test_objects_that_slide_level_or_only_turn_are_not_uneven():
  level = SLIDES.replace("0 0 1", "1 1 0")  # three axes in a plane, so that M is singular
  assert not has_uneven_objects(thrown(0.02, level + HINGES))
  assert not has_uneven_objects(thrown(0.02, SLIDES))
  assert not has_uneven_objects(thrown(0.02, HINGES))


@pytest.mark.parametrize("joints", ["<freejoint/>", SLIDES + HINGES], ids=("free", "slides"))
def test_float32_keeps_the_fall_of_an_uneven_object(joints):
  """It does not turn as it falls; about its origin the weight's torque left 4e-6 of gravity."""
  assert (np.median(float32_errors(thrown(0.02, joints)), axis=1) < 1e-6).all()


def needle(size, joint="<freejoint/>", quat="1 0 0 0"):
  """Return a rod of 1 m, as heavy as a needle of steel, with its inertia along the body's axes or turned."""
  geom = f"<geom type='capsule' size='{size} 0.5' mass='8e-5' quat='{quat}'/>"
  return load_model(f"<mujoco><worldbody><body>{joint}{geom}</body></worldbody></mujoco>")


@pytest.mark.parametrize(
  "joint", ["<freejoint/>", "<joint type='ball'/>", HINGES], ids=("free", "ball", "hinges")
)
def test_a_needle_is_thin_and_a_pole_is_not(joint):
  assert has_thin_bodies(needle(0.002, joint))
  assert not has_thin_bodies(needle(0.05, joint))
  assert not has_thin_bodies(needle(0.002, "<joint/><joint/>"))  # two hinges with one axis


@pytest.mark.parametrize("quat", ["1 0 0 0", "0.8 0.2 0.3 0.4"], ids=("straight", "turned"))
@pytest.mark.parametrize(
  "joint", ["<freejoint/>", "<joint type='ball'/>", HINGES], ids=("free", "ball", "hinges")
)
def test_float32_keeps_the_spin_of_a_needle(joint, quat):
  """Its gyroscopic torque cancels about the long axis; the median was 1.4e-4 free and 1.4e-3 on a ball."""
  assert (np.median(float32_errors(needle(0.002, joint, quat)), axis=1) < 1e-6).all()
