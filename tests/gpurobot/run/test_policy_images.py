"""Pictures of what a policy sees, by hand, and in the events of a training."""

import io

import numpy as np
import pytest
import torch
from PIL import Image as File
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

import train
from gpurobot.learn.env import Image
from gpurobot.learn.random import Random
from gpurobot.run.policy_images import enlarged, picture, pictures
from tests.gpurobot import toy_pixels

BYTES = Image((1, 2, 3), "uint8", 0.0, 255.0, ("policy",))
METRES = Image((1, 3, 1), "float16", 1.0, 3.0, ("policy",))


def test_colours_stay_as_they_are():
  image = torch.tensor([[[1, 2, 3], [4, 5, 6]]], dtype=torch.uint8)
  assert picture(image, BYTES).equal(image)


def test_a_range_becomes_black_to_white():
  image = torch.tensor([[[1.0], [2.0], [9.0]]])
  assert picture(image, METRES).tolist() == [[[0] * 3, [127] * 3, [255] * 3]]
  assert picture(torch.full((1, 1, 1), torch.nan), METRES).tolist() == [[[0] * 3]]


def test_the_last_frame_is_shown_other_channels_side_by_side_and_a_pixel_as_a_square():
  image = torch.arange(12, dtype=torch.uint8).view(1, 2, 6)
  assert picture(image, BYTES, frames=2).tolist() == [[[3, 4, 5], [9, 10, 11]]]
  assert picture(image, BYTES, frames=6).tolist() == [[[5] * 3, [11] * 3]]
  image = torch.tensor([[[1, 2], [3, 4]]], dtype=torch.uint8)
  assert picture(image, BYTES).tolist() == [[[1] * 3, [3] * 3, [2] * 3, [4] * 3]]
  small = torch.arange(6, dtype=torch.uint8).view(1, 2, 3)
  large = enlarged(small, 2)
  assert large.shape == (2, 4, 3)
  assert large[:, 2:].eq(small[0, 1]).all()


def test_the_images_of_a_task_are_found():
  env = toy_pixels.Task(toy_pixels.Config(), 3, random=Random(0, 3))
  shown = pictures(env, env.reset())
  assert {name: tuple(image.shape) for name, image in shown.items()} == {
    "view": (3, 20, 20, 3),
    "depth": (3, 20, 20, 3),
  }


def images_of_run(folder, tag):
  """Return the pictures of a run by step."""
  events = EventAccumulator(str(folder), size_guidance={"images": 0}).Reload()
  if tag not in events.Tags()["images"]:
    return {}
  shown = events.Images(tag)
  return {event.step: np.asarray(File.open(io.BytesIO(event.encoded_image_string))) for event in shown}


@pytest.mark.usefixtures("keep_signal_handlers")
@pytest.mark.parametrize(
  ("words", "rows"), [(("log.images_every=2",), (1, 3)), (("log.images_every=null",), ())]
)
def test_a_training_shows_what_its_policy_sees(tmp_path, words, rows):
  task = f"task={toy_pixels.__file__}"
  ends = ("log_every=1", "max_iterations=3", f"run_dir={tmp_path}")
  assert train.main([task, *words, *ends]) == 0
  shown = images_of_run(tmp_path, "seen/view")
  assert list(shown) == [64 * 8 * row for row in rows]
  assert [*images_of_run(tmp_path, "seen/depth")] == [*shown]
  for image in shown.values():
    assert image.shape == (80, 4 * 80, 3)  # four environments
    assert image.max() > 200  # the point
