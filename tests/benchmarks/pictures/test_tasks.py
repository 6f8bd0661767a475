import re

import numpy as np
from PIL import Image

import tasks
from benchmarks.pictures import tasks as pictures

MOST_BYTES, MOST_BYTES_IN_ALL = 25_000, 700_000
# Tasks whose policies see images, which lie beside the scene.
SEEING = {"cartpole_pixels", "cube_lift_depth", "quadruped_rough_depth", "arm_reach_rgb"}


def test_every_task_has_a_picture_beside_its_text():
  """Of the tasks of dm/ one of each row has."""
  own, suites = (page.read_text() for page in pictures.PAGES)
  assert len({*pictures.shown()}) == len(pictures.shown())
  for name in tasks.available():
    section = suites if "/" in name else own.partition(f"### `{name}`")[2].partition("\n#")[0]
    assert name.startswith("dm/") or f"![{name}](pictures/{pictures.path_of(name).name})" in section
  for row in re.findall(r"^\| (`dm/.*?) \|", suites, re.MULTILINE):
    assert {*re.findall("`(.*?)`", row)} & {*pictures.shown()}


def test_pictures_are_small():
  paths = [pictures.path_of(name) for name in pictures.shown()]
  assert max(path.stat().st_size for path in paths) <= MOST_BYTES
  assert sum(path.stat().st_size for path in paths) <= MOST_BYTES_IN_ALL
  for path in paths:
    with Image.open(path) as image:
      assert image.height == pictures.HEIGHT
      assert (image.width > pictures.WIDTH) == (path.stem in SEEING)


def test_no_picture_is_left_over():
  assert {*pictures.FOLDER.iterdir()} == {pictures.path_of(name) for name in pictures.shown()}


def test_a_picture_is_drawn_and_shows_something(tmp_path, drawing):
  path = pictures.draw("cartpole", tmp_path)
  with Image.open(path) as image:
    picture = np.asarray(image.convert("RGB"))
  assert picture.shape == (pictures.HEIGHT, pictures.WIDTH, 3)
  assert picture.std(axis=(0, 1)).min() > 10
