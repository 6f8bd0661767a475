from pathlib import Path

import imageio.v2 as imageio
import numpy as np
import pytest
from PIL import Image

from gpurobot.settings.config import ConfigError
from gpurobot.viewer.film import Film

SHADES = (20, 120, 220)


@pytest.mark.parametrize("suffix", [".mp4", ".gif", ".webp"])
def test_pictures_come_back_in_their_order_at_their_rate(tmp_path, suffix):
  path = tmp_path / "videos" / f"shades{suffix}"
  with Film(path, 10) as film:
    for shade in SHADES:
      film.add(np.full((48, 64, 3), shade, np.uint8))
  reader = imageio.get_reader(path) if suffix == ".mp4" else None
  if reader:
    frames, rate = [np.asarray(frame) for frame in reader], reader.get_meta_data()["fps"]
    reader.close()
  else:
    with Image.open(path) as image:
      frames, times = [], []
      for index in range(image.n_frames):
        image.seek(index)
        frames.append(np.asarray(image.convert("RGB")))
        times.append(image.info["duration"])
    rate = 1000 / times[0]
  assert rate == 10
  assert [frame.shape for frame in frames] == [(48, 64, 3)] * 3
  assert [frame.mean() for frame in frames] == pytest.approx(SHADES, abs=8)


@pytest.mark.parametrize("suffix", [".gif", ".webp"])
def test_a_rate_that_is_no_whole_number_of_milliseconds_is_kept_in_the_mean(tmp_path, suffix):
  path = tmp_path / f"smooth{suffix}"
  with Film(path, 30) as film:
    for shade in range(60):
      film.add(np.full((16, 16, 3), 4 * shade, np.uint8))
  with Image.open(path) as image:
    total = 0
    for index in range(image.n_frames):
      image.seek(index)
      image.load()
      total += image.info["duration"]
  assert total == 2000


@pytest.mark.parametrize(
  ("file", "fps", "message"),
  [
    ("fast.gif", 60, "at most 50 frames per second, not fps=60"),  # browsers slow it down
    ("ant.mp3", 10, "video=ant[.]mp3 is none of .*; the nearest is '[.]mp4'"),
  ],
)
def test_a_film_that_cannot_be_written_is_refused(file, fps, message):
  with pytest.raises(ConfigError, match=message):
    Film(Path(file), fps)


@pytest.mark.parametrize("suffix", [".mp4", ".gif"])
def test_half_a_film_is_not_kept(tmp_path, suffix):
  def stumble():
    with Film(tmp_path / f"half{suffix}", 10) as film:
      film.add(np.zeros((48, 64, 3), np.uint8))
      raise ZeroDivisionError

  with pytest.raises(ZeroDivisionError):
    stumble()
  assert not list(tmp_path.iterdir())
