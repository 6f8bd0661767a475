"""Terrains: what difficulty raises, stairs by hand, seeds, the scene, and heights against MuJoCo's rays."""

import itertools

import mujoco
import numpy as np
import pytest
import torch

import physics
from tasks import base
from tasks.shared import terrain
from tasks.shared.terrain import KINDS, Terrain, Tile

ROBOT = base.ASSETS / "quadruped" / "robot.xml"


def tile(kind, difficulty, seed=0, points=61):
  """Return the heights of a tile of 6 m."""
  return KINDS[kind](Tile(points, 0.1, difficulty, torch.Generator().manual_seed(seed)))


def roughness(heights):
  """Return the mean height difference of neighbours [m]."""
  return sum(heights.diff(dim=axis).abs().mean() for axis in (0, 1))


@pytest.fixture(scope="module")
def ground():
  return Terrain(["stairs_up", "rubble", "obstacles"], levels=2, size=4.0)


@pytest.mark.parametrize("kind", KINDS)
def test_difficulty_makes_the_ground_rougher(kind):
  steps = [roughness(tile(kind, difficulty)) for difficulty in (0.0, 0.3, 0.6, 1.0)]
  assert all(a < b for a, b in itertools.pairwise(steps))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("difficulty", [0.0, 1.0])
def test_a_tile_is_zero_along_its_edge_and_flat_about_its_centre(kind, difficulty):
  heights = tile(kind, difficulty)
  for edge in (heights[0], heights[-1], heights[:, 0], heights[:, -1]):
    assert edge.abs().max() < 1e-6
  start = heights[22:39, 22:39]  # 0.8 m to each side
  assert (start - start[8, 8]).abs().max() < 1e-6


def test_stairs_by_hand():
  """At half the difficulty 9 cm high, 0.3 m deep, from 0.8 m to 3 m: seven and a third of them."""
  heights = tile("stairs_up", 0.5)
  profile = heights[30, 30:] - heights[30, 30]
  expected = [0] * 9 + [k for k in range(1, 8) for _ in range(3)] + [8]
  torch.testing.assert_close(profile, 0.09 * torch.tensor(expected))
  assert heights.equal(heights.T)
  assert heights.equal(heights.flip(0))
  assert heights[30, 30].item() == pytest.approx(-8 * 0.09)


def test_slopes_by_hand():
  """At half the difficulty 1 in 5 over 2.2 m."""
  profile = tile("slope_up", 0.5)[30, 30:]
  torch.testing.assert_close(profile.diff(), torch.tensor([0.0] * 8 + [0.02] * 22))
  assert profile[0].item() == pytest.approx(-0.44)


@pytest.mark.parametrize(("up", "down"), [("slope_up", "slope_down"), ("stairs_up", "stairs_down")])
def test_down_is_up_from_above(up, down):
  assert tile(up, 0.7).equal(-tile(down, 0.7))


def test_stones_by_hand():
  """The hardest: 0.3 m of stone, a cell down, 0.3 m of floor, a cell up."""
  heights = tile("stones", 1.0, points=121)
  row = heights[40]  # through stones: 40 = 5 periods of 8
  assert (row[1:30] <= terrain.STONE_HEIGHT[1]).all()
  on_stone = torch.arange(121) % 8 <= 3
  assert row[1:45][~on_stone[1:45]].eq(-0.25).all()
  assert (row[1:45][on_stone[1:45]].abs() <= 0.04).all()
  assert heights[44, 1:45].eq(-0.25).all()  # along a gap


@pytest.mark.parametrize(("kind", "bounds"), [("rubble", terrain.RUBBLE), ("obstacles", terrain.OBSTACLE)])
@pytest.mark.parametrize("difficulty", [0.0, 1.0])
def test_random_ground_stays_within_its_bounds_and_comes_near_them(kind, bounds, difficulty):
  highest = tile(kind, difficulty).abs().max().item()
  assert 0.7 * bounds[int(difficulty)] < highest <= bounds[int(difficulty)]


def test_the_same_seed_gives_the_same_ground_and_another_seed_another(ground):
  def make(seed):
    return Terrain(["stairs_up", "rubble", "obstacles"], levels=2, seed=seed, size=4.0).heights

  assert make(0).equal(ground.heights)
  assert not make(1).equal(ground.heights)


def test_tiles_of_one_kind_differ():
  heights = Terrain(["rubble", "rubble"], levels=1, size=4.0).heights
  assert not heights[10:51].equal(heights[50:91])


def test_robots_start_in_the_middle_of_tiles_on_the_ground(ground):
  assert ground.origins.shape == (2, 3, 3)
  torch.testing.assert_close(ground.origins[:, 0, :2], torch.tensor([[-2.0, -4], [2, -4]]))
  torch.testing.assert_close(ground.origins[0, :, 1], torch.tensor([-4.0, 0, 4]))
  torch.testing.assert_close(ground.height(ground.origins[..., :2]), ground.origins[..., 2])
  assert ground.origins[1, 0, 2].item() == pytest.approx(-4 * 0.16)  # stairs over 1.2 m


def test_an_unknown_kind_is_named_with_the_nearest():
  with pytest.raises(ValueError, match=r"terrain 'stair_up' is unknown, nearest: 'stairs_up'"):
    Terrain(["stair_up"], levels=1)


def test_a_size_between_cells_is_told_with_one_that_fits():
  with pytest.raises(ValueError, match=r"tiles of 6\.05 m are no multiple of two cells of 0\.1 m: write 6 m"):
    Terrain(["rubble"], levels=1, size=6.05)


def test_heights_are_those_that_rays_meet_in_the_scene(ground):
  model = physics.load_model(ground.scene(ROBOT))
  data, floor = mujoco.MjData(model.mj), model.geom_id("floor")
  mujoco.mj_forward(model.mj, data)
  points = ground.half * (2 * torch.rand(500, 2, generator=torch.Generator().manual_seed(0)) - 1)
  down = np.array([0.0, 0.0, -1.0])
  met = [
    5 - mujoco.mj_rayHfield(model.mj, data, floor, np.array([*point, 5.0]), down) for point in points.tolist()
  ]
  np.testing.assert_allclose(ground.height(points), met, atol=2e-5)
  assert np.ptp(met) > 0.5


def test_beyond_the_edge_the_ground_goes_on_as_the_edge(ground):
  assert ground.height(torch.tensor([[100.0, 0.0], [0.0, -100.0]])).equal(torch.zeros(2))


def test_the_scene_keeps_the_robot_and_its_floors_friction(ground):
  flat, rough = physics.load_model(ROBOT), physics.load_model(ground.scene(ROBOT))
  floor = rough.geom_id("floor")
  assert rough.body_names == flat.body_names
  assert rough.actuator_names == flat.actuator_names
  np.testing.assert_array_equal(rough.geom_friction[floor], flat.geom_friction[flat.geom_id("floor")])


def test_flat_ground_is_a_scene_too():
  model = physics.load_model(Terrain(["slope_up"], levels=1, size=4.0).scene(ROBOT))
  assert model.mj.hfield_data.max() == 0.0


def test_a_robot_without_a_floor_is_told(ground):
  with pytest.raises(ValueError, match="the robot has no geom 'floor'"):
    ground.scene("<mujoco/>")
