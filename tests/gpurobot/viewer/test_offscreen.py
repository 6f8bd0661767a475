import numpy as np
import pytest

from gpurobot.config import ConfigError
from gpurobot.viewer import offscreen
from gpurobot.viewer.offscreen import Camera


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
