import numpy as np
import pytest

from gpurobot.settings.config import ConfigError
from gpurobot.viewer import offscreen
from gpurobot.viewer.offscreen import Camera, beside, fit


@pytest.fixture
def forgetful():
  """Let the backend be chosen anew, in this test and after it."""
  offscreen.backend.cache_clear()
  yield
  offscreen.backend.cache_clear()


def count(picture, colour):
  """Return the pixels in which one of red, green, blue is far above the others."""
  others = np.delete(picture.astype(int), colour, axis=2).max(2)
  return int((picture[..., colour] > others + 60).sum())


def test_a_picture_shows_robot_target_and_ground_in_tiles(make_player, drawing):
  player = make_player(3)
  player.task.sim.mocap_pos[:, 0] = player.task.constant([0.4, 0.0, 1.4])  # above the robot
  player.task.sim.qpos[2, 7] = 100.0  # the third is far away, and the camera follows
  camera = Camera(player.task, 3, 64, 48)
  picture = camera.shoot()
  camera.close()
  assert picture.shape == (96, 128, 3)
  tiles = picture[:48, :64], picture[:48, 64:], picture[48:, :64]
  red, green = ([count(tile, colour) for tile in tiles] for colour in (0, 1))
  assert red[0] > 100
  assert red[0] == pytest.approx(red[2], rel=0.2)
  assert green[0] > 5
  assert green[2] == 0
  assert not picture[48:, 64:].any()
  assert tiles[0].std(axis=(0, 1)).min() > 10  # sky, pattern, shadow


def test_a_camera_of_the_model_can_be_chosen(make_player, drawing):
  player = make_player(1)
  camera = Camera(player.task, 1, 64, 48, "above")
  from_above = camera.shoot()
  camera.close()
  assert count(from_above, 0) > 20
  with pytest.raises(ConfigError, match=r"camera=abowe: .* the nearest is 'above'"):
    Camera(player.task, 1, 64, 48, "abowe")


def test_what_is_seen_lies_beside_the_scene():
  scene = np.full((40, 60, 3), 7, np.uint8)
  wide, tall = np.full((5, 20, 3), 100, np.uint8), np.full((80, 10, 3), 200, np.uint8)
  wide[0, 0] = 50
  assert beside(scene, []) is scene
  picture = beside(scene, [wide, tall])
  assert picture.shape == (40, 120, 3)
  assert (picture[:, :60] == 7).all()
  assert (picture[:15, 60:] != 0).all()  # 20 x 5 pixels as 60 x 15
  assert (picture[:3, 60:63] == 50).all()  # one pixel
  assert (picture[:3, 63:66] == 100).all()
  assert not picture[15:20, 60:].any()
  assert (picture[20:, 60:62] == 200).all()  # a quarter of 80 x 10
  assert not picture[20:, 63:].any()
  assert beside(scene, [wide]).shape == (40, 120, 3)
  assert beside(scene, [np.zeros((20, 20, 3), np.uint8)]).shape == (40, 80, 3)  # half of the height


def test_every_tile_shows_what_its_policy_sees(seeing_player, drawing):
  camera = Camera(seeing_player.task, 2, 64, 48)
  alone, both = camera.shoot(), camera.shoot(seeing_player.policy_images)
  camera.close()
  assert alone.shape == (48, 128, 3)
  assert both.shape == (48, 2 * 102, 3)  # images of 38 x 24
  for index, tile in enumerate((both[:, :102], both[:, 102:])):
    assert (tile[:, :64] == alone[:, 64 * index :][:, :64]).all()
    seen = seeing_player.policy_images(index)
    assert (tile[:24, 64:] == fit(seen["view"], 64, 24)).all()
    assert (tile[24:, 64:] == fit(seen["depth"], 64, 24)).all()


def test_what_cannot_draw_is_passed_over(monkeypatch, forgetful, drawing):
  monkeypatch.delenv("MUJOCO_GL", raising=False)
  monkeypatch.setattr(offscreen, "BACKENDS", ("a typing error", drawing))
  assert offscreen.backend() == drawing


def test_where_nothing_draws_it_is_said_what_to_install(monkeypatch, forgetful):
  monkeypatch.delenv("MUJOCO_GL", raising=False)
  monkeypatch.setenv("PYOPENGL_PLATFORM", "none")  # of which neither can make use
  with pytest.raises(ConfigError, match=r"install EGL .* or OSMesa"):
    offscreen.backend()


def test_a_backend_that_is_asked_for_has_to_work(monkeypatch, forgetful):
  monkeypatch.setenv("MUJOCO_GL", "egg")
  with pytest.raises(ConfigError, match=r"MUJOCO_GL=egg does not work here"):
    offscreen.backend()


def test_two_cameras_do_not_disturb_each_other(make_player, drawing):
  player = make_player(1)
  one = Camera(player.task, 1, 64, 48)
  before = one.shoot()
  other = Camera(player.task, 1, 32, 24)
  assert (one.shoot() == before).all()
  assert other.shoot().shape == (24, 32, 3)
  other.close()
  assert (one.shoot() == before).all()
  one.close()
