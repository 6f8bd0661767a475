"""Students that see: their encoders learn, their images are shifted, and settings are checked."""

import pytest
import torch

from gpurobot.learn import image_setup
from gpurobot.settings.config import ConfigError
from tests.gpurobot import taught_pixels
from tests.gpurobot.learn.test_ppo import iterate
from tests.gpurobot.taught import make_student, make_teacher


def make(**values):
  fixed = {"ppo.precision": "float32", "ppo.random_shift": 1}
  return make_student([make_teacher(32)], taught_pixels, 32, **fixed | values)


def test_a_student_learns_from_images():
  one = make(**{"distill.mix": 0.0, "distill.loss": "mse", "env.force": 0.02})
  iterate(one, 1)
  first = float(one.report()["teacher_error"])
  iterate(one, 15)
  one.report()
  iterate(one, 1)
  assert float(one.report()["teacher_error"]) < 0.2 * first


def test_a_student_acts_on_the_shifted_images_that_it_learns_from(monkeypatch):
  one, seen = make(graphs="off"), []
  act = one.network.act
  monkeypatch.setattr(
    one.network, "act", lambda obs, *rest: seen.append(obs["view"].clone()) or act(obs, *rest)
  )
  raw = one.collector.obs["view"].clone()
  one.collect()
  assert not torch.equal(seen[0][0], raw)
  assert torch.equal(torch.cat(seen), one.rollout.samples["obs", "view"])


def test_the_first_line_tells_of_images_and_memory():
  told = make().describe()
  assert "; images view 20x20x3 uint8, depth 20x20x1 float16, shifted by up to 1 pixels" in told
  assert "GB per rank; student 16-16-16-2 " in told


def test_mistakes_are_one_line(monkeypatch):
  with pytest.raises(ConfigError, match=r"^ppo.random_shift=20 moves all of the image 'view'"):
    make(**{"ppo.random_shift": 20})
  monkeypatch.setattr(image_setup, "total_memory", lambda _device: 1000)
  with pytest.raises(ConfigError, match=r"^ppo.horizon=8: the images of a rollout of 32 environments take"):
    make()
