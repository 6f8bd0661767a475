"""Start frames: bins, what is held out, and more starts where a motion is lost."""

import dataclasses

import pytest
import torch

from tasks.core.errors import SettingError
from tasks.motion.library import Library
from tasks.motion.start_frames import Config, StartFrames, Where
from tests.tasks.motion.robots import own, robot_and_model

MARGIN = 25


def library():
  walk = dataclasses.replace(own("walk"), weight=3.0)
  return Library(robot_and_model()[1], [walk, own("jump")], 0.02, bodies=[1])


def starts(*, training=True, **settings):
  return StartFrames(library(), Config(**settings), MARGIN, training=training)


def draw(begins, failures=None, n=20_000):
  uniform = torch.rand(n, 2, generator=torch.Generator().manual_seed(0))
  failures = torch.zeros(begins.bins) if failures is None else failures
  return begins.draw(failures.expand(n, -1), uniform)


def test_without_failures_clips_are_drawn_by_weight_and_their_frames_alike():
  clip, frame = draw(starts(held_out=0))
  assert (clip == 0).float().mean() == pytest.approx(0.75, abs=0.01)
  usable = torch.tensor(library().counts) - 1 - MARGIN
  assert (frame < usable[clip]).all()
  assert frame[clip == 0].float().mean() == pytest.approx(usable[0] / 2, rel=0.02)


def test_every_second_bin_of_some_is_held_out_for_evaluation_alone():
  seen, kept = draw(starts(held_out=4)), draw(starts(held_out=4, training=False))
  bins = [{*zip(clip.tolist(), (frame // 25).tolist(), strict=True)} for clip, frame in (seen, kept)]
  assert not bins[0] & bins[1]
  assert bins[1] == {(0, 2), (0, 6), (0, 10), (1, 2)}
  anywhere = draw(starts(held_out=4, starts=Where.anywhere))
  assert {*zip(anywhere[0].tolist(), (anywhere[1] // 25).tolist(), strict=True)} == bins[0] | bins[1]


def test_an_evaluation_of_a_short_clip_has_all_of_its_frames():
  begins = StartFrames(
    Library(robot_and_model()[1], [own("jump")], 0.02), Config(held_out=20), 25, training=False
  )
  assert draw(begins)[1].unique().numel() == len(own("jump")) - 1 - MARGIN


def test_first_starts_are_the_first_frames():
  clip, frame = draw(starts(starts=Where.first), torch.rand(starts().bins))
  assert not frame.any()
  assert {*clip.tolist()} == {0, 1}


def test_failures_draw_starts_to_their_bin_and_the_bins_before_in_the_same_clip():
  begins = starts(held_out=0, start_uniform=0.1, start_spread=0.5)
  failures = torch.zeros(1, begins.bins)
  failures[0, 5] = 1.0
  chances = begins.chances(failures)[0]
  even = begins.even
  assert chances.sum() == pytest.approx(1.0, abs=1e-5)
  extra = (chances - 0.1 * even) / 0.9
  assert extra[3:6].tolist() == pytest.approx([x / 1.75 for x in (0.25, 0.5, 1.0)], abs=2e-3)
  assert (
    chances[[0, 1, 2, *range(6, begins.bins)]] < 0.11 * even[[0, 1, 2, *range(6, begins.bins)]] + 1e-3
  ).all()
  assert extra[40:].sum() == pytest.approx(0.0, abs=1e-5)  # bins that the clips do not fill
  first_of_jump = int((begins.clip == 1).nonzero()[0])
  assert begins.spread[first_of_jump, first_of_jump - 1] == 0


def test_failures_are_forgotten_by_and_by_and_each_environment_has_its_own():
  begins = starts(start_memory=0.25)
  failures, row = torch.zeros(2, begins.bins), torch.tensor([130, 130])
  failures = begins.after(failures, row, row, torch.tensor([True, False]))
  assert failures[0, begins.bin_of_row[130]] == 0.25
  assert failures[0].sum() == 0.25
  assert not failures[1].any()
  failures = begins.after(failures, row, row, torch.tensor([False, False]))
  assert failures[0].sum() == pytest.approx(0.75 * 0.25)


def test_a_failure_counts_where_its_episode_started_but_not_long_before():
  begins = starts(start_memory=1.0)
  first, last = torch.tensor([0, 30, 130, 180]), torch.tensor([20, 190, 190, 190])
  failures = begins.after(torch.zeros(4, begins.bins), first, last, torch.ones(4, dtype=torch.bool))
  assert failures.argmax(1).tolist() == [0, 4, 5, 7]  # row 190 is in bin 7
  assert failures.sum(1).tolist() == [1.0] * 4


def test_a_jump_whose_landing_fails_is_drawn_before_its_take_off():
  jump = own("jump")  # it takes off in frame 67, lands in frame 85, and falls over a second later
  adapting = Config(start_uniform=0.1)
  begins = StartFrames(
    Library(robot_and_model()[1], [jump], 0.02, bodies=[1]), adapting, MARGIN, training=True
  )
  failures = torch.zeros(1, begins.bins)
  for first in (0, 30, 60):
    rows = torch.tensor([first]), torch.tensor([140])
    failures = begins.after(failures, *rows, torch.tensor([True]))
  assert begins.chances(failures)[0, begins.first_frame > 85].sum() < 0.1


def test_rows_after_the_last_start_count_for_the_last_bin_of_their_clip():
  begins, counts = starts(), library().counts
  assert begins.clip[begins.bin_of_row].tolist() == [0] * counts[0] + [1] * counts[1]
  assert begins.first_frame[begins.bin_of_row[counts[0] - 1]] == begins.first_frame[begins.clip == 0].amax()
  assert begins.bin_of_row[24] == 0
  assert begins.bin_of_row[25] == 1


def test_bins_grow_until_they_are_few_enough():
  begins = starts(start_bins=8)
  assert begins.bins == 8
  assert (begins.even > 0).sum() in (6, 7)  # one is held out of the walk, maybe one of the jump
  with pytest.raises(SettingError, match=r"env\.start_bins=1 is less than the number of clips: write 2"):
    starts(start_bins=1)
