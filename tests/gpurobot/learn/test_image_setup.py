import pytest

from gpurobot.device.distributed import World
from gpurobot.learn import image_setup
from gpurobot.learn.env import Image
from gpurobot.learn.random import Random
from gpurobot.settings.config import ConfigError, assign, defaults
from gpurobot.training import LEARNERS
from tests.gpurobot import toy, toy_pixels

IMAGE_BYTES = 20 * 20 * 3 + 20 * 20 * 2


def make(module=toy_pixels, small: tuple[int, int] | None = None, **settings):
  config = assign(
    defaults(module), {"num_envs": 64} | {key.replace("_", ".", 1): x for key, x in settings.items()}
  )
  env = module.Task(config.env, 64, random=Random(0, 64))
  if small:
    env.images = {"view": Image((*small, 3), "uint8", 0, 255, ("policy",))}
  return LEARNERS[config.algorithm](env, config, World())


@pytest.mark.parametrize(("settings", "message"), [
  ({"ppo_encoder": "nature"}, "ppo.encoder=nature: the task observes no images; leave it out"),
  ({"ppo_random_shift": 3}, "ppo.random_shift=3: the task observes no images; leave it out"),
  ({"algorithm": "sac", "sac_encoder_features": 9},
   "sac.encoder_features=9: the task observes no images; leave it out"),
])  # fmt: skip
def test_settings_of_images_need_images(settings, message):
  with pytest.raises(ConfigError) as error:
    make(toy, **settings)
  assert str(error.value) == message


@pytest.mark.parametrize(("small", "settings", "message"), [
  ((17, 40), {}, ("ppo.encoder=nature: the image 'view' of 17 x 40 pixels is too small, it needs 18; "
                  "write ppo.encoder=resnet, or make it larger")),
  ((4, 40), {"ppo_encoder": "resnet"},
   "ppo.encoder=resnet: the image 'view' of 4 x 40 pixels is too small, it needs 5; make it larger"),
  ((20, 20), {"ppo_random_shift": 20},
   "ppo.random_shift=20 moves all of the image 'view' of 20 x 20 pixels out of sight; write fewer"),
])  # fmt: skip
def test_images_are_large_enough(small, settings, message):
  with pytest.raises(ConfigError) as error:
    make(small=small, **settings)
  assert str(error.value) == message


def test_a_rollout_that_does_not_fit_ends_in_one_line(monkeypatch):
  needed = (8 + 1 + 2) * 64 * IMAGE_BYTES
  monkeypatch.setattr(image_setup, "total_memory", lambda _device: needed)
  with pytest.raises(ConfigError, match=r"ppo.horizon=8: the images of a rollout of 64 environments take"):
    make()
  monkeypatch.setattr(image_setup, "total_memory", lambda _device: 2 * needed)
  learner = make()
  rollout = learner.rollout
  stored = [rollout.samples["obs"], rollout.final_obs, rollout.last_obs, learner.collector.obs]
  held = sum(part[name].nbytes for part in stored for name in ("view", "depth"))
  assert held == needed == image_setup.rollout_bytes(learner.env, 8)


def test_the_first_line_tells_of_images_and_memory():
  told = make(ppo_random_shift=2).describe()
  assert (
    "images view 20x20x3 uint8, depth 20x20x1 float16, shifted by up to 2 pixels to 8 features by nature; "
    in told
  )
  assert "rollout of 0.0014 GB per rank; network 16-16-16-2" in told
  assert "images" not in make(toy).describe()


def test_a_policy_of_numbers_does_not_fit_a_task_with_images():
  with pytest.raises(ValueError, match=r"^its policy sees no images, and this one depth 20x20x1 float16"):
    make().load_policy(make(toy).policy_dict())
