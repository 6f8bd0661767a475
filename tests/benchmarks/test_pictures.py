import re

import numpy as np
import pytest
from PIL import Image

import tasks
from benchmarks import page, pictures
from gpurobot.deploy import demos

MOST_BYTES, MOST_BYTES_IN_ALL = 25_000, 700_000
# Tasks whose policies see images, which lie beside the scene.
SEEING = {"cartpole_pixels", "cube_lift_depth", "quadruped_rough_depth", "arm_reach_rgb"}


def test_every_task_has_a_picture_beside_its_text():
  """Of the tasks of dm/ one of each row has."""
  page = pictures.PAGE.read_text()
  assert len({*pictures.shown()}) == len(pictures.shown())
  for name in tasks.available():
    section = page.partition(f"### `{name}`")[2].partition("\n#")[0]
    assert name.startswith("dm/") or f"![{name}](pictures/{pictures.path_of(name).name})" in section
  for row in re.findall(r"^\| (`dm/.*?) \|", page.partition("## DeepMind Control Suite")[2], re.MULTILINE):
    assert {*re.findall("`(.*?)`", row)} & {*pictures.shown()}


def test_pictures_are_small():
  paths = [pictures.path_of(name) for name in pictures.shown()]
  assert max(path.stat().st_size for path in paths) <= MOST_BYTES
  assert sum(path.stat().st_size for path in paths) <= MOST_BYTES_IN_ALL
  for path in paths:
    with Image.open(path) as image:
      assert image.height == pictures.HEIGHT
      assert (image.width > pictures.WIDTH) == (path.stem in SEEING)


def test_the_page_s_picture_is_kept_and_small():
  assert page.PATH.stat().st_size <= 80_000
  with Image.open(page.PATH) as image:
    assert image.size == (page.SIZE["width"], page.SIZE["height"])


def test_no_picture_is_left_over():
  assert {*pictures.FOLDER.iterdir()} == {pictures.path_of(name) for name in pictures.shown()}


def test_a_demo_is_shown_in_motion_and_a_task_without_one_as_it_starts():
  assert "cartpole" in demos.names()
  assert float(pictures.played("cartpole")[0].sim.qvel.abs().sum()) > 0
  quadruped, _ = pictures.started("quadruped")
  home = quadruped.model.mj.key_qpos[0, 7:]
  assert quadruped.sim.qpos[0, 7:].tolist() == pytest.approx(home, abs=0.5)


def test_what_a_policy_sees_lies_beside_the_scene(tmp_path, drawing):
  with Image.open(pictures.draw("cartpole_pixels", tmp_path)) as image:
    assert image.size == (pictures.WIDTH + pictures.HEIGHT // 2, pictures.HEIGHT)


def test_a_picture_is_drawn_and_shows_something(tmp_path, drawing):
  path = pictures.draw("cartpole", tmp_path)
  with Image.open(path) as image:
    picture = np.asarray(image.convert("RGB"))
  assert picture.shape == (pictures.HEIGHT, pictures.WIDTH, 3)
  assert picture.std(axis=(0, 1)).min() > 10
