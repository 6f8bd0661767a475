"""Height fields with spheres, capsules and boxes, against MuJoCo's contacts."""

from dataclasses import replace

import mujoco
import numpy as np
import pytest
import torch

from physics.algebra.spatial import ZERO, Vector
from physics.collision.convex import Form
from physics.collision.geometry import BOX, ContactCandidate, Shape
from physics.collision.hfield import HeightField, hfield_capsule, hfield_convex, hfield_sphere
from physics.convex.hull import Hulls
from physics.load import load_model
from physics.parity import NumpySimulation
from physics.parity.contacts import mujoco_row, traced_contacts
from physics.parity.states import States
from physics.trace.trace import absolute, where
from tests.physics.oracle import assert_same_rows, evaluate, mujoco_at

SLOTS, HULLS = 16, Hulls.of(None, [])
SHAPES = {"sphere": hfield_sphere, "capsule": hfield_capsule, "box": hfield_convex}
ROWS, COLUMNS = 7, 6


def compiled(geom, margin=0.0, seed=0, pose="", size="1 1.2 0.3 0.2"):
  """Return MuJoCo's model of a geom over random elevations, its contacts exact to rounding."""
  elevation = " ".join(f"{x:.4f}" for x in np.random.default_rng(seed).uniform(size=ROWS * COLUMNS))
  return mujoco.MjModel.from_xml_string(f"""<mujoco>
    <option ccd_tolerance="1e-12" ccd_iterations="500"/>
    <asset><hfield name="h" nrow="{ROWS}" ncol="{COLUMNS}" size="{size}" elevation="{elevation}"/></asset>
    <worldbody><geom type="hfield" hfield="h" {pose}/>
      <body><freejoint/><geom {geom} margin="{margin}"/></body></worldbody></mujoco>""")


def poses(model, qpos):
  """Return position, rotation and size of both geoms [2, 15, state], and MuJoCo's contacts in each state."""
  data, shapes, contacts = mujoco.MjData(model), [], []
  for q in qpos:
    data.qpos[:] = q
    mujoco.mj_forward(model, data)
    shapes.append([np.r_[data.geom_xpos[g], data.geom_xmat[g], model.geom_size[g]] for g in range(2)])
    rows = [(contact.dist, *contact.frame[:3], *contact.pos) for contact in data.contact]
    contacts.append(np.array(rows).reshape(-1, 7))
  return np.array(shapes).transpose(1, 2, 0), contacts


def found(model, kind, shapes):
  """Return for every state the contacts found [n, 7]: distance, normal, point."""
  field, (margin,) = HeightField.of(load_model(model), 0), {float(model.geom_margin.sum())}

  def traced(program, *numbers):
    one = Shape.of(numbers[:15])
    one = Shape(one.position, one.rotation, one.size, field)
    table, count = program.array(8 * SLOTS), program.variable(0.0)
    table.fill([0.0] * len(table))
    two = Shape.of(numbers[15:])
    box = Form(BOX, (BOX,), 0, HULLS, ZERO, Vector(*two.size), 500, 1e-12)
    two = replace(two, asset=box if kind == "box" else None)
    touches = SHAPES[kind](program, one, two, margin)
    for slot, candidate in enumerate(x for x in touches if isinstance(x, ContactCandidate)):
      assert slot == 0, "yielded once, inside a loop"
      distance, normal, point = candidate.resolve()
      with program.loop(SLOTS) as i:
        here = candidate.active & (
          absolute(count[0] - program.table([float(k) for k in range(SLOTS)], i)) < 0.5
        )
        for k, value in enumerate((1.0, distance, *normal, *point)):
          table[i * 8 + k] = where(here, value, table[i * 8 + k])
      count[0] = count[0] + where(candidate.active, 1.0, 0.0)
    return table.read()

  rows = evaluate(traced, *shapes[0], *shapes[1]).T.reshape(-1, SLOTS, 8)
  return [state[state[:, 0] > 0, 1:] for state in rows]


def random_poses(count, seed=1, low=-0.25, high=0.5):
  random = np.random.default_rng(seed)
  place = random.uniform((-1.2, -1.4, low), (1.2, 1.4, high), (count, 3))
  return np.hstack([place, random.normal(size=(count, 4))])


GEOMS = {"sphere": "0.1", "capsule": "0.05 0.2", "box": "0.1 0.15 0.05"}


def geom(kind, size=None):
  return f'type="{kind}" size="{size or GEOMS[kind]}"'


@pytest.mark.parametrize("kind", ["sphere", "capsule"])
def test_shallow_contacts_are_exact(kind):
  """Cores do not reach into the prisms, so that nothing depends on MuJoCo's tolerance."""
  model = compiled(geom(kind))
  shapes, expected = poses(model, random_poses(400, low=0.1))
  pairs = list(zip(found(model, kind, shapes), expected, strict=True))
  shallow = [
    (here, there) for here, there in pairs if len(there) and there[:, 0].min() > -model.geom_size[1, 0]
  ]
  assert len(shallow) > 30
  for here, there in shallow:
    assert_same_rows(here, there)


@pytest.mark.parametrize(
  ("kind", "size"), [("sphere", "0.04"), ("capsule", "0.03 0.05"), ("box", "0.04 0.05 0.03")]
)
def test_a_height_field_may_be_anywhere(kind, size):
  """Cells are shorter than the geoms, the field is turned and away from the origin."""
  model = compiled(geom(kind, size), 1e-7, pose='pos="3 -2 1" euler="40 -30 70"', size="0.2 0.3 0.1 0.05")
  data = mujoco.MjData(model)
  mujoco.mj_forward(model, data)
  qpos = random_poses(100)
  qpos[:, :3] = data.geom_xpos[0] + (qpos[:, :3] * [0.2, 0.25, 0.2]) @ data.geom_xmat[0].reshape(3, 3).T
  shapes, expected = poses(model, qpos)
  for here, there in zip(found(model, kind, shapes), expected, strict=True):
    assert_same_rows(here, there, 1e-6)
  assert sum(len(rows) > 2 for rows in expected) > 20


def test_what_lies_on_flat_ground_is_pushed_up():
  model = compiled(geom("sphere"))
  model.hfield_data[:] = 0.5
  qpos = random_poses(20)
  qpos[:, :2] *= 0.5
  qpos[:, 2] = 0.15 + 0.1 - 1e-4
  shapes, _ = poses(model, qpos)
  for here in found(model, "sphere", shapes):
    deepest = here[here[:, 0].argmin()]
    np.testing.assert_allclose(deepest[:4], [-1e-4, 0, 0, 1], atol=1e-9)


def test_what_is_beside_above_or_not_a_number_touches_nothing():
  model = compiled(geom("capsule"))
  qpos = np.array([[0, 0, 0.6], [1.3, 0, 0], [0, -1.5, 0], [0, 0, -0.5], [np.nan, 0, 0]])
  qpos = np.hstack([qpos, np.tile([1.0, 0, 0, 0], (5, 1))])
  shapes, expected = poses(model, qpos[:4])
  assert not any(map(len, expected))
  shapes = np.concatenate([shapes, shapes[..., :1]], axis=2)
  shapes[1, 0, 4] = np.nan
  assert not any(map(len, found(model, "capsule", shapes)))


def test_elevations_of_the_second_field_of_a_model():
  model = mujoco.MjModel.from_xml_string("""<mujoco><asset>
    <hfield name="a" nrow="2" ncol="3" size="1 1 1 1" elevation="0 1 0 0 0 1"/>
    <hfield name="b" nrow="3" ncol="2" size="4 1 0.5 0.25" elevation="0 2 1 4 0 0"/></asset>
    <worldbody><geom type="hfield" hfield="b"/></worldbody></mujoco>""")
  field = HeightField.of(load_model(model), 0)
  assert (field.rows, field.columns, field.half, field.base) == (3, 2, (4.0, 1.0), -0.25)
  assert field.spacing == (8.0, 1.0)
  np.testing.assert_array_equal(np.reshape(field.heights, (3, 2)), model.hfield_data[6:].reshape(3, 2) * 0.5)
  heights = evaluate(lambda program, row, column: [field.height(program, row, column)], [0, 1, 2], [1, 0, 1])
  np.testing.assert_allclose(heights[0], np.reshape(field.heights, (3, 2))[[0, 1, 2], [1, 0, 1]])


def lying_limbs(count):
  """Return a chain of meshes of 24 by 16 cm over rough ground with cells of 3 cm, and states as it falls."""
  random = np.random.default_rng(0)
  vertices = " ".join(f"{x:.3f}" for x in (random.uniform(-1, 1, (24, 3)) * [0.12, 0.08, 0.05]).ravel())
  elevation = " ".join(f"{x:.3f}" for x in random.uniform(size=81 * 81))
  limb = "<body pos='.12 0 0'><joint axis='0 {} {}' range='-20 20'/>{}"
  geom = "<geom type='mesh' mesh='m' contype='2' conaffinity='0'/>"
  limbs = "".join(limb.format(i % 2, 1 - i % 2, geom) for i in range(count - 1))
  model = load_model(f"""<mujoco><asset><mesh name="m" vertex="{vertices}"/>
    <hfield name="h" nrow="81" ncol="81" size="1.2 1.2 0.08 0.1" elevation="{elevation}"/></asset><worldbody>
    <geom type="hfield" hfield="h" conaffinity="2"/><body pos="-1.1 0 0.15"><freejoint/>
    {geom}{limbs}{"</body>" * count}</worldbody></mujoco>""")
  data, states = mujoco.MjData(model.mj), []
  for _ in range(8):
    mujoco.mj_step(model.mj, data, 60)
    states.append(data.qpos.copy())
  return model, np.array(states)


def test_a_robot_of_meshes_that_lies_on_fine_cells_loses_no_contact():
  """Boxes around meshes are near more prisms than these touch: up to 58 in a state had no room."""
  model, states = lying_limbs(12)
  simulation = NumpySimulation(model, len(states), ("contact_count", "overflow"))
  simulation.qpos[:] = torch.from_numpy(states)
  simulation.forward()
  counts = [mujoco_at(model, qpos).ncon for qpos in states]
  assert max(counts) > 30
  assert simulation.overflow.tolist() == [0] * len(states)
  assert simulation.contact_count.tolist() == counts


def fine_ground(shape, tiles):
  """Return a model of a shape in ground with 32 by 32 cells of 2 cm, made of `tiles` by `tiles` fields."""
  heights, n = np.random.default_rng(0).uniform(size=(33, 33)), 32 // tiles
  fields, geoms, data = "", "", []
  for row, column in np.ndindex(tiles, tiles):
    name, (x, y) = f"{row}-{column}", [(k + 0.5) * n * 0.02 - 0.32 for k in (column, row)]
    fields += f'<hfield name="{name}" nrow="{n + 1}" ncol="{n + 1}" size="{n / 100} {n / 100} .01 .1"/>'
    geoms += f'<geom type="hfield" hfield="{name}" pos="{x} {y} 0"/>'
    data.append(heights[row * n : row * n + n + 1, column * n : column * n + n + 1].ravel())
  mj = mujoco.MjModel.from_xml_string(f"""<mujoco><option ccd_tolerance="1e-12" ccd_iterations="500"/>
    <asset>{fields}</asset><worldbody>{geoms}<body><freejoint/><geom {shape}/></body></worldbody></mujoco>""")
  mj.hfield_data[:] = np.concatenate(data)
  return load_model(mj)


@pytest.mark.parametrize(
  "shape",
  [
    "type='capsule' size='.05 .2' euler='0 90 30'",
    "type='box' size='.12 .1 .05' euler='2 3 30' margin='1e-7'",
  ],
)
def test_shapes_in_fine_cells_have_all_contacts(shape):
  """Of 290 all but 64 were dropped. MuJoCo ends at 50 with one field, so it has one for every 16 cells."""
  whole, parts = fine_ground(shape, 1), fine_ground(shape, 8)
  qpos = np.array([[0.003, 0.002, z, 1, 0, 0, 0] for z in (0.04, 0.045, 0.05)])
  states = States(qpos=qpos, qvel=np.zeros((3, 6)), ctrl=np.zeros((3, 0)))
  counts = []
  for found, q in zip(traced_contacts(whole, states), qpos, strict=True):
    data = mujoco_at(parts, q)
    expected = np.array([mujoco_row(parts.mj, contact) for contact in data.contact])
    assert_same_rows(found[:, 2:10], expected[:, 2:10], 1e-6)
    counts.append(len(expected))
  assert max(counts) > 100
