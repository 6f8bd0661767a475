"""Pairs of geoms that can collide, and their parameters, against MuJoCo's own contacts."""

import mujoco
import numpy as np
import pytest

from physics.load import load_model
from physics.model.pairs import keep_apart
from physics.support import UnsupportedModel
from tests.physics.arm import arm
from tests.physics.conftest import CASES
from tests.physics.reports import assert_agrees


def heap(rng, option="", flag=""):
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
  return f"""<mujoco><option timestep="0.01" {option}><flag {flag} {disabled}/></option>
    <worldbody>{floor}{tree}</worldbody><contact>{pairs}</contact></mujoco>"""


OVERRIDE = """o_margin="0.04" o_solref="{}" o_solimp="0.7 1.5 0.03 0.4 3" o_friction="0.9 0 0.3 0.4 0.5" """
REPLACED = [(OVERRIDE.format(solref), 'override="enable"') for solref in ("0.03 0.7", "-90 -7")]


@pytest.mark.parametrize("option", [("", ""), *REPLACED], ids=["own", "replaced", "replaced-direct"])
@pytest.mark.parametrize("seed", range(20))
def test_pairs_are_mujocos_contacts(seed, option):
  model = load_model(heap(np.random.default_rng(seed), *option))
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


@pytest.mark.parametrize("seed", range(10))
def test_pairs_can_be_kept_apart(seed):
  rng = np.random.default_rng(seed)
  model = load_model(heap(rng))
  part = rng.random(len(model.pairs)) < 0.3
  apart, together = (
    [pair for pair, is_apart in zip(model.pairs, part, strict=True) if is_apart == side]
    for side in (True, False)
  )
  keep_apart(model.mj, apart, together)
  data = mujoco.MjData(model.mj)
  mujoco.mj_forward(model.mj, data)
  acting = {tuple(contact.geom.tolist()) for contact in data.contact if not contact.exclude}
  assert acting == {(pair.geom1, pair.geom2) for pair in together}
  assert len(acting) < len(model.pairs)


def test_only_so_many_geoms_can_be_kept_apart():
  balls = '<body pos="{0} 0 0"><joint/><geom size="0.1"/></body>'
  model = load_model(f"<mujoco><worldbody>{''.join(map(balls.format, range(66)))}</worldbody></mujoco>")
  apart = [pair for pair in model.pairs if pair.geom2 == pair.geom1 + 33]
  with pytest.raises(ValueError, match="33 geoms cannot collide with others, too many to leave out"):
    keep_apart(model.mj, apart, [pair for pair in model.pairs if pair not in apart])


def test_planes_and_height_fields_never_touch():
  model = load_model("""<mujoco><asset><hfield name="hill" nrow="2" ncol="2" size="1 1 1 1"/></asset>
    <worldbody><geom type="plane" size="1 1 1"/>
    <body><joint/><inertial pos="0 0 0" mass="1" diaginertia="1 1 1"/>
    <geom type="hfield" hfield="hill"/></body></worldbody></mujoco>""")
  assert model.pairs == ()


def test_two_pairs_of_the_same_geoms_both_push():
  """gymnasium_robotics' adroit_relocate.xml has such a pair."""
  ball = '<body pos="0 0 0.1"><freejoint/><geom name="ball" size="0.1"/></body>'
  model = load_model(f"""<mujoco><worldbody><geom name="floor" type="plane" size="1 1 1"/>{ball}</worldbody>
    <contact><pair geom1="floor" geom2="ball"/><pair geom1="ball" geom2="floor" condim="1"/></contact>
    </mujoco>""")
  assert [(pair.explicit, pair.condim) for pair in model.pairs] == [(0, 3), (1, 1)]
  assert_agrees(model)


@pytest.mark.parametrize("cone", ["pyramidal", "elliptic"])
def test_replaced_parameters_move_bodies_as_mujocos_do(cone):
  xml = CASES["margins"].read_text().replace(' condim="1"', "")
  option = f'<option cone="{cone}" {OVERRIDE.format("0.03 0.7")}><flag override="enable"/></option>'
  model = load_model(xml.replace("<worldbody>", f"{option}<worldbody>", 1))
  assert_agrees(model)


def test_refuses_to_vary_what_the_flag_override_replaces():
  with pytest.raises(UnsupportedModel, match="vary='geom_friction' with the flag override is not supported"):
    load_model(arm(flag='override="enable"'), vary=["body_mass", "geom_friction"])
  load_model(arm(flag='override="enable"'), vary=["body_mass"])
