import dataclasses
import math

import pytest
import torch

from tasks.core.errors import TaskError
from tasks.core.image import find_images
from tasks.core.observation import Observations

N = 4
RANGES = {"depth": (0.5, 4.5)}


def config(**settings):
  return dataclasses.make_dataclass("Config", settings)(**settings)


def frame(step: int) -> dict[str, dict[str, torch.Tensor]]:
  view = torch.full((N, 2, 3, 3), 10 * step, dtype=torch.uint8)
  depth = torch.full((N, 2, 3, 1), 1.0 + step)
  return {
    "policy": {"joint": torch.full((N, 2), step), "view": view, "depth": depth},
    "critic": {"depth": depth},
  }


def test_images_stay_apart_from_the_numbers_of_the_groups():
  blocks = frame(0)
  observations = Observations(blocks, config(), noisy=True, ranges=RANGES)
  assert observations.dims == {"policy": 2, "critic": 0}
  assert observations.names == {"policy": ["joint", "joint"], "critic": []}
  view, depth = observations.images["view"], observations.images["depth"]
  assert (view.shape, view.kind, view.low, view.high, view.groups) == (
    (2, 3, 3),
    "uint8",
    0,
    255,
    ("policy",),
  )
  assert (depth.kind, depth.low, depth.high, depth.groups) == ("float16", 0.5, 4.5, ("policy", "critic"))
  parts = observations.push(blocks)
  assert {name: (x.shape[1:], x.dtype) for name, x in parts.items()} == {
    "policy": ((2,), torch.float32),
    "critic": ((0,), torch.float32),
    "view": ((2, 3, 3), torch.uint8),
    "depth": ((2, 3, 1), torch.float16),
  }
  blocks["policy"]["view"].add_(1)  # a camera draws the next image in the same memory
  assert float(parts["view"].float().max()) == 0


def test_frames_are_stacked_in_the_channels_and_start_anew_with_an_episode():
  observations = Observations(frame(0), config(stack_view=3), noisy=True, ranges=RANGES)
  assert observations.images["view"].shape == (2, 3, 9)
  assert observations.images["depth"].shape == (2, 3, 1)
  everywhere, first = torch.ones(N, dtype=torch.bool), torch.arange(N) == 0
  assert observations.restart(frame(1), everywhere)["view"][0, 0, 0].tolist() == [10] * 9
  observations.push(frame(2))
  assert observations.push(frame(3))["view"][1, 0, 0].tolist() == [10] * 3 + [20] * 3 + [30] * 3
  again = observations.restart(frame(4), first)["view"][:, 0, 0]
  assert again[0].tolist() == [40] * 9
  assert again[1].tolist() == [10] * 3 + [20] * 3 + [30] * 3
  assert observations.memory["frames of view"].shape == (N, 2, 3, 9)


def test_what_a_camera_does_not_reach_is_the_end_of_the_range():
  blocks = frame(0)
  observations = Observations(blocks, config(), noisy=True, ranges=RANGES)
  blocks["policy"]["depth"][:, 0, :, 0] = torch.tensor([torch.inf, 0.0, torch.nan])
  far, near, broken = observations.push(blocks)["depth"][0, 0, :, 0].tolist()
  assert (far, near) == (4.5, 0.5)
  assert math.isnan(broken)  # it is told


IMAGE = torch.zeros(N, 2, 3, 1)


@pytest.mark.parametrize(("blocks", "ranges", "message"), [
  ({"policy": {"view": IMAGE.int()}}, {},
   r"observe\(\) 'view' is an image of torch.int32: make it uint8, or float with a range"),
  ({"policy": {"view": IMAGE}}, {},
   r"is an image of torch.float32 without a range: write image_ranges = \{'view': \(low, high\)\}"),
  ({"policy": {"view": IMAGE}}, {"view": (1, 0)}, r"image_ranges\['view'\] = \(1, 0\): write \(low"),
  ({"policy": {"view": IMAGE}}, {"view": (0, 1e9)}, r"within \+-65504"),
  ({"policy": {"policy": IMAGE.byte()}}, {}, "named like a group; rename it"),
  ({"policy": {"view": IMAGE.byte()}, "critic": {"view": IMAGE.byte()}}, {},
   r"observe\(\) returns two images 'view': give both groups the same tensor, or the images two names"),
])  # fmt: skip
def test_mistakes_end_in_one_line(blocks, ranges, message):
  with pytest.raises(TaskError, match=message):
    find_images(blocks, ranges)


def test_images_that_change_and_noise_on_them_are_told():
  observations = Observations(frame(0), config(), noisy=True, ranges=RANGES)
  other = frame(0)
  other["policy"]["view"] = other["policy"]["view"][:, :1]
  with pytest.raises(ValueError, match=r"observe\(\) returned the images .* return the same in every step"):
    observations.push(other)
  for wrong in ("noise_view", "stack_joint"):
    with pytest.raises(ValueError, match=wrong):
      Observations(frame(0), config(**{wrong: 2}), noisy=True, ranges=RANGES)
