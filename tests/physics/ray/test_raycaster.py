"""Lidars and height scans, against mj_ray."""

import mujoco
import numpy as np
import pytest
import torch

import physics
from physics.parity import random_states
from physics.ray.raycaster import RayCaster, Rays, trace_rays
from physics.ray.scene import visible_geoms
from physics.state.layout import Layout
from physics.trace.emit_numpy import numpy_function
from tests.physics.oracle import mujoco_at

ELEVATION = " ".join(f"{x:.3f}" for x in np.random.default_rng(1).uniform(size=30))
ROVER = f"""<mujoco><asset>
    <hfield name="h" nrow="5" ncol="6" size="3 3 0.5 0.3" elevation="{ELEVATION}"/></asset>
  <default><geom contype="0" conaffinity="0"/></default><worldbody>
  <geom type="hfield" hfield="h"/><geom type="box" size="0.2 0.3 1.5" pos="1.5 0.5 0"/>
  <body name="rover" pos="0 0 1"><freejoint/><geom type="box" size="0.3 0.2 0.1"/>
    <body name="mast" pos="0.1 0 0.2"><joint axis="0 0 1"/><geom type="capsule" size="0.03 0.1"/></body>
  </body>
  <body name="ball" mocap="true" pos="-1 0 1"><geom size="0.4"/></body>
</worldbody></mujoco>"""
RANDOM = np.random.default_rng(0)
ORIGINS, DIRECTIONS = RANDOM.normal(size=(12, 3)) * 0.1, RANDOM.normal(size=(12, 3))


def turned(frame, matrix):
  """Return the axes of a frame in the world, as columns."""
  yaw = np.arctan2(matrix[1, 0], matrix[0, 0])
  about_z = np.array([[np.cos(yaw), -np.sin(yaw), 0], [np.sin(yaw), np.cos(yaw), 0], [0, 0, 1]])
  return {"body": matrix, "yaw": about_z, "world": np.eye(3)}[frame]


def expected(model, qpos, body, frame):
  """Return mj_ray's distances [ray] about a body whose own geoms do not count."""
  data, geom = mujoco_at(model, qpos), np.zeros(1, np.int32)
  axes = turned(frame, data.xmat[body].reshape(3, 3))
  return [
    mujoco.mj_ray(model.mj, data, data.xpos[body] + axes @ o, axes @ d, None, 1, body, geom)
    for o, d in zip(ORIGINS, DIRECTIONS, strict=True)
  ]


@pytest.mark.parametrize(
  ("body", "frame"), [("rover", "body"), ("mast", "yaw"), ("ball", "body"), ("mast", "world")]
)
def test_rays_about_a_body_are_those_of_mj_ray(body, frame):
  model = physics.load_model(ROVER)
  index, layout, states = model.body_id(body), Layout(model, ()), random_states(model, 20)
  program = trace_rays(
    model, layout, Rays(index, frame, ORIGINS, DIRECTIONS, visible_geoms(model, exclude=index))
  )
  memory = np.zeros((layout.rows, len(states)))
  start = {"qpos": states.qpos.T, "mocap_pos": [[-1.0], [0], [1]], "mocap_quat": [[1.0], [0], [0], [0]]}
  for name, rows in start.items():
    block = layout.blocks[name]
    memory[block.start : block.start + block.rows] = rows
  found = np.zeros((len(ORIGINS), len(states)))
  numpy_function(program)(1, 0, 0, state=memory, control=found)
  wanted = [expected(model, qpos, index, frame) for qpos in states.qpos]
  np.testing.assert_allclose(found.T, wanted, atol=1e-9)
  assert 0.1 < (found >= 0).mean() < 0.98


def test_a_caster_measures_the_ground_in_every_environment():
  """Compiled: rays straight down around rovers at different places, then at others."""
  model = physics.load_model(ROVER)
  simulation = physics.Simulation(model, 20, threads=1, outputs=())
  grid = [[x, y, 0.0] for x in (-0.5, 0.0, 0.5) for y in (-0.3, 0.3)]
  caster = RayCaster(
    simulation, "rover", grid, [0, 0, -2], frame="yaw", geoms=visible_geoms(model, groups=(0,), exclude=1)
  )
  data, geom = mujoco.MjData(model.mj), np.zeros(1, np.int32)
  for shift in (0.0, 0.4):
    simulation.qpos[:, 0] = torch.linspace(-1.5, 1, 20) + shift
    simulation.qpos[:, 2] = 3.0
    found = caster.cast()
    assert found.shape == (20, 6)
    assert found is caster.distance
    for env in range(20):
      data.qpos[:] = simulation.qpos[env].double()
      mujoco.mj_forward(model.mj, data)
      origins = data.xpos[1] + np.array(grid)
      wanted = [mujoco.mj_ray(model.mj, data, o, [0, 0, -2.0], None, 1, 1, geom) for o in origins]
      np.testing.assert_allclose(found[env], wanted, atol=1e-5)


def test_what_rays_can_meet_is_a_choice():
  model = physics.load_model(ROVER)
  simulation = physics.Simulation(model, 1, threads=1, outputs=())
  simulation.qpos[:, 2] = 3.0
  down = {"body": "rover", "origins": [[0, 0, 0]], "directions": [[0, 0, -1]]}
  cast = {
    name: RayCaster(simulation, **down, geoms=geoms).cast().item()
    for name, geoms in (("all", None), ("own", [2]), ("ground", [0]), ("none", []))
  }
  assert cast["own"] == pytest.approx(0.1)
  assert cast["all"] == cast["ground"] > 2.4
  assert cast["none"] == -1
