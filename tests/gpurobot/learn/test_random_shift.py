import torch

from gpurobot.learn.random import Random
from gpurobot.learn.random_shift import RandomShift, shifted


def test_a_shift_moves_and_repeats_the_edge():
  image = torch.arange(12, dtype=torch.uint8).view(1, 3, 4, 1).repeat(3, 1, 1, 1)
  moved = shifted(image, torch.tensor([[0, 0], [1, 0], [0, -2]]))[..., 0]
  assert torch.equal(moved[0], image[0, ..., 0])
  assert moved[1].tolist() == [[0, 1, 2, 3], [0, 1, 2, 3], [4, 5, 6, 7]]
  assert moved[2].tolist() == [[2, 3, 3, 3], [6, 7, 7, 7], [10, 11, 11, 11]]


def test_every_shift_is_drawn_equally_often_and_moves_all_frames_alike():
  count, pixels = 9000, 1
  image = torch.zeros(count, 5, 5, 2, dtype=torch.uint8)
  image[:, 2, 2] = 1
  RandomShift(["view"], pixels)({"view": image}, Random(0, count).uniform)
  assert torch.equal(image[..., 0], image[..., 1])
  drawn = image[..., 0].float().mean(0)
  assert float(drawn[[0, 4]].sum() + drawn[:, [0, 4]].sum()) == 0
  torch.testing.assert_close(drawn[1:4, 1:4], torch.full((3, 3), 1 / 9), rtol=0, atol=0.015)


def test_ranks_shift_as_one_does():
  image = torch.randint(0, 256, (8, 6, 6, 1), dtype=torch.uint8)
  whole, halves = image.clone(), [part.clone() for part in image.split(4)]
  shift = RandomShift(["view"], 2)
  shift({"view": whole}, Random(3, 8).uniform)
  for rank, half in enumerate(halves):
    shift({"view": half}, Random(3, 4, 4 * rank).uniform)
  assert torch.equal(whole, torch.cat(halves))
  assert not torch.equal(whole, image)


def test_observations_before_and_after_have_shifts_of_their_own():
  first = torch.randint(0, 256, (8, 6, 6, 1), dtype=torch.uint8)
  second, shift, uniform = first.clone(), RandomShift(["view"], 2), Random(0, 8).uniform
  shift({"view": first}, uniform)
  shift({"view": second}, uniform, "the next ")
  assert not torch.equal(first, second)


def test_no_pixels_change_nothing():
  image = torch.randint(0, 256, (8, 6, 6, 1), dtype=torch.uint8)
  same = image.clone()
  RandomShift(["view"], 0)({"view": same}, Random(0, 8).uniform)
  assert torch.equal(image, same)
