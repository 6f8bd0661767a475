"""Images against MuJoCo's renderer, away from silhouettes: pixels whose neighbours show the same geom."""

import functools

import mujoco
import numpy as np
import pytest
import torch

import physics
from physics.camera.camera import Camera
from physics.parity import MujocoSimulation
from tests.physics.camera import scenes
from tests.physics.camera.reference import draw
from tests.physics.conftest import CASES

VIEWS = [(scenes.SHAPES, name) for name in ("eye", "on_arm", "lens", "track")]
VIEWS += [(scenes.GROUND, name) for name in ("eye", "side", "below")]
NAMES = ["shapes, eye", "on_arm", "lens", "track", "ground, eye", "side", "below"]
ANGLE = 0.35  # of the joint, if there is one [rad]
ALL = ("depth", "rgb", "segmentation", "normal")
load = functools.cache(physics.load_model)


def simulate(model, num_envs=1, threads=1):
  return physics.Simulation(model, num_envs, threads=threads, outputs=())


def see(model, name, size, kinds=ALL, qpos=None, engine=MujocoSimulation):
  """Return the images of a state as arrays, and MuJoCo's data of it.

  The state is mostly one of MuJoCo C: where bodies are in a kernel, other tests say.
  """
  simulation = engine(model, 1)
  data = mujoco.MjData(model.mj)
  if qpos is not None:
    simulation.qpos[:] = torch.tensor(qpos, dtype=torch.float32)
    data.qpos[:] = qpos
  mujoco.mj_forward(model.mj, data)
  images = Camera(simulation, name, *size, kinds).render()
  return {kind: image[0].numpy() for kind, image in images.items()}, data


@pytest.mark.usefixtures("_draws")
@pytest.mark.parametrize(("xml", "name"), VIEWS, ids=NAMES)
def test_images_are_those_of_mujoco(xml, name):
  """Depth to 1e-3, the same geoms, and colours that differ by 8 of 255 on average and hardly in structure."""
  model = load(xml)
  images, data = see(model, name, (64, 48), qpos=[ANGLE] * model.nq, engine=simulate)
  wanted = draw(model.mj, data, name, 64, 48)
  inside = wanted.inside
  assert inside.mean() > 0.5
  np.testing.assert_array_equal(images["segmentation"][..., 0][inside], wanted.segmentation[inside])
  np.testing.assert_allclose(images["depth"][..., 0][inside], wanted.depth[inside], rtol=1e-3)
  off = np.abs(images["rgb"].astype(float) - wanted.rgb)[inside]
  assert off.mean() < 8.0
  assert np.corrcoef(images["rgb"][inside].ravel(), wanted.rgb[inside].ravel())[0, 1] > 0.9


@pytest.mark.usefixtures("_draws")
@pytest.mark.parametrize("robot", ["assets/arm", "assets/quadruped"])
def test_robots_are_where_mujoco_draws_them(robot):
  spec = mujoco.MjSpec.from_file(str(CASES[robot]))
  spec.worldbody.add_camera(name="eye", pos=[1.2, -0.2, 0.6], xyaxes=[0.2, 1, 0, -0.3, 0, 1])
  model = physics.load_model(spec)
  images, data = see(model, "eye", (96, 72), ("depth", "segmentation"))
  wanted = draw(model.mj, data, "eye", 96, 72)
  inside = wanted.inside
  assert len(np.unique(wanted.segmentation[inside])) > 4
  np.testing.assert_array_equal(images["segmentation"][..., 0][inside], wanted.segmentation[inside])
  np.testing.assert_allclose(images["depth"][..., 0][inside], wanted.depth[inside], rtol=1e-3)


@pytest.mark.parametrize(("xml", "name"), [VIEWS[0], VIEWS[4], VIEWS[5]])
def test_depths_and_normals_are_those_of_rays_in_float64(xml, name):
  """MuJoCo's mj_ray, through the centre of each pixel, is the oracle."""
  model = load(xml)
  images, data = see(model, name, (32, 24), qpos=[ANGLE] * model.nq)
  mj, camera = model.mj, model.mj.camera(name).id
  axes, tangent = data.cam_xmat[camera].reshape(3, 3), np.tan(np.radians(mj.cam_fovy[camera] / 2))
  shown = np.array([1, 1, 1, 0, 0, 0], np.uint8)
  geom, checked = np.zeros(1, np.int32), 0
  for row in range(24):
    for column in range(32):
      x, y = ((column + 0.5) / 16 - 1) * tangent * 4 / 3, (1 - (row + 0.5) / 12) * tangent
      way, normal = axes @ np.array([x, y, -1.0]), np.zeros(3)
      start = data.cam_xpos[camera]
      depth = mujoco.mj_ray(mj, data, start, way, shown, 1, -1, geom, normal)
      if depth < 0 or images["segmentation"][row, column, 0] != geom[0]:
        continue
      checked += 1
      assert images["depth"][row, column, 0] == pytest.approx(depth, rel=1e-4)
      np.testing.assert_allclose(images["normal"][row, column], axes.T @ normal, atol=2e-3)
  assert checked > 350


def test_the_background_is_far_and_nothing():
  model = physics.load_model("<mujoco><worldbody><geom size='1' pos='0 0 -9'/></worldbody></mujoco>")
  camera = Camera(MujocoSimulation(model, 1), "world", 5, 3, ALL)
  images = camera.render()
  assert images["segmentation"][0, 1, 2] == 0
  assert images["depth"][0, 1, 2] == pytest.approx(8.0, rel=1e-6)
  corner = {kind: image[0, 0, 0].tolist() for kind, image in images.items()}
  assert corner["depth"] == [pytest.approx(camera.far)]
  assert corner == corner | {"segmentation": [-1], "normal": [0, 0, 0], "rgb": [0, 0, 0]}


def test_images_do_not_depend_on_threads_or_neighbours():
  model = load(scenes.SHAPES)
  angles = torch.linspace(-1, 1, 19).unsqueeze(1)
  found = []
  for threads, envs in ((1, slice(0, 19)), (3, slice(0, 19)), (2, slice(7, 12))):
    simulation = simulate(model, len(angles[envs]), threads)
    simulation.qpos[:] = angles[envs]
    images = Camera(simulation, "on_arm", 21, 13, ALL).render()
    found.append({kind: image.clone() for kind, image in images.items()})
  assert all(found[0][kind].equal(found[1][kind]) for kind in ALL)
  assert all(found[0][kind][7:12].equal(found[2][kind]) for kind in ALL)
  assert not found[0]["depth"][0].equal(found[0]["depth"][18])


def test_only_what_is_due_is_drawn():
  simulation = simulate(load(scenes.SHAPES), 3)
  camera = Camera(simulation, "on_arm", 16, 16)
  before = camera.render()["depth"].clone()
  simulation.qpos[:] = 0.5
  after = camera.render(torch.tensor([False, True, False]))["depth"]
  assert after is camera.images["depth"]
  assert [after[env].equal(before[env]) for env in range(3)] == [True, False, True]
  assert after[1].equal(camera.render()["depth"][0])


def test_every_environment_has_its_own_place_lens_and_colours():
  model = load(scenes.SHAPES)
  simulation = simulate(model, 3)
  camera, moved = (Camera(simulation, name, 32, 32, ALL) for name in ("eye", "world"))
  usual = {kind: image.clone() for kind, image in camera.render().items()}
  eye = model.mj.camera("eye")
  moved.pos[1] = torch.tensor(eye.pos)
  moved.quat[1] = torch.tensor(eye.quat) * 3.0  # of any length
  moved.fovy[1] = float(eye.fovy[0])
  for kind, image in moved.render().items():
    torch.testing.assert_close(image[1], usual[kind][1], rtol=1e-4, atol=1e-4)
  camera.fovy[2] = 20.0
  camera.colors[1, 1] = torch.tensor([0.0, 0, 1])
  camera.diffuse[0] = 0.0
  images, ball = camera.render(), usual["segmentation"][1, ..., 0] == 1
  assert not images["depth"][2].equal(usual["depth"][2])
  assert (images["rgb"][1][ball][:, 2] > images["rgb"][1][ball][:, 0]).all()
  assert images["rgb"][0].float().mean() < 0.5 * usual["rgb"][0].float().mean()


def test_a_camera_inside_a_body_sees_through_it():
  """Back faces are not drawn, as in MuJoCo; nor is the back of a plane."""
  model = physics.load_model("""<mujoco><worldbody>
    <geom size="0.5"/><geom type="box" size="1 1 1"/><geom type="box" size="4 4 0.5" pos="0 0 -4"/>
    <geom type="plane" size="0 0 1" pos="0 0 -2" euler="180 0 0"/></worldbody></mujoco>""")
  images, _ = see(model, "world", (8, 8))
  assert (images["segmentation"] == 2).all()
  np.testing.assert_allclose(images["depth"], 3.5, rtol=1e-6)


def test_mujoco_c_sees_the_same():
  model = physics.load_model(scenes.SHAPES, vary=["geom_size"])
  found = []
  for simulation in (physics.Simulation(model, 2, threads=1), MujocoSimulation(model, 2)):
    simulation.qpos[:] = torch.tensor([[0.2], [0.9]])
    simulation.geom_size[1, 1, 0] = 0.4
    found.append(Camera(simulation, "eye", 24, 24, ALL).render())
  for kind in ALL:
    agree = torch.isclose(found[0][kind].float(), found[1][kind].float(), rtol=1e-4, atol=2e-3)
    assert agree.float().mean() > 0.99, kind
  assert not found[0]["depth"][0].equal(found[0]["depth"][1])


@pytest.mark.parametrize(
  ("words", "message"),
  [
    (("eyes", 8, 8), "no camera or body 'eyes'; the nearest is 'eye'"),
    (("eye", 0, 8), "camera 'eye': an image of 0 x 8 pixels has none"),
    (("eye", 8, -1), "camera 'eye': an image of 8 x -1 pixels has none"),
    (("eye", 8, 8, ("dept",)), "camera 'eye' cannot draw 'dept'; the nearest is 'depth'"),
    (
      ("eye", 8, 8, ("depth",), (2.0, 1.0)),
      "camera 'eye': depths=.* are not two numbers",
    ),
    (("eye", 8, 8, ()), "camera 'eye' draws nothing: name kinds of images: depth, rgb, segmentation, normal"),
  ],
)
def test_a_mistake_is_named(words, message):
  with pytest.raises((KeyError, ValueError), match=message):
    Camera(MujocoSimulation(load(scenes.SHAPES), 2), *words)


def test_too_many_pixels_are_refused_with_the_memory_that_they_need():
  simulation = MujocoSimulation(load(scenes.SHAPES), 2)
  needs = r"camera 'eye': 2 images of 316230 x 31623 pixels need 80.0 GB, and cpu has .* GB in all"
  with pytest.raises(MemoryError, match=needs):
    Camera(simulation, "eye", 316230, 31623)


def test_a_scene_of_many_geoms_and_one_of_none():
  """More than the bits of a word: every ball is seen, each where it is."""
  balls = "".join(f'<geom size="0.3" pos="{i % 10 - 4.5} {i // 10 - 3} -12"/>' for i in range(70))
  images, _ = see(physics.load_model(f"<mujoco><worldbody>{balls}</worldbody></mujoco>"), "world", (80, 80))
  rows, columns = ((images["segmentation"][..., 0] == 45).nonzero()[i].mean() for i in range(2))
  assert set(np.unique(images["segmentation"])) == {-1, *range(70)}
  scale = 40 / (12 * np.tan(np.radians(22.5)))
  assert (columns, rows) == pytest.approx((39.5 + 0.5 * scale, 39.5 - scale), abs=0.6)
  empty = physics.load_model('<mujoco><worldbody><geom size="1" rgba="0 0 0 0"/></worldbody></mujoco>')
  assert (see(empty, "world", (8, 8))[0]["segmentation"] == -1).all()


def test_depths_beyond_the_chosen_ones_are_not_drawn():
  simulation = MujocoSimulation(load(scenes.SHAPES), 1)
  usual, cut = (Camera(simulation, "eye", 32, 24, ALL, depths) for depths in (None, (2.5, 3.5)))
  every, shown = (camera.render()["depth"].clone() for camera in (usual, cut))
  assert (cut.near, cut.far) == (2.5, 3.5)
  within = (every > 2.5) & (every < 3.5)
  assert shown[within].equal(every[within])
  assert (shown[every > 3.5] == 3.5).all()
  assert shown.min() >= 2.5
