import math

import pytest
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

from gpurobot.board import Board


def read(folder) -> EventAccumulator:
  return EventAccumulator(str(folder)).Reload()


def test_scalars_have_groups_and_descriptions(tmp_path):
  board = Board(tmp_path, 0)
  for steps in (10, 20):
    board.write({"return": steps / 4, "forward_speed": 1.5}, steps)
  board.close()
  found = read(tmp_path)
  assert found.Tags()["scalars"] == ["episode/return", "task/forward_speed"]
  assert [(event.step, event.value) for event in found.Scalars("episode/return")] == [(10, 2.5), (20, 5.0)]
  description = found.SummaryMetadata("episode/return").summary_description
  assert description.startswith("sum of the raw rewards of an episode")


@pytest.mark.parametrize("number", [math.nan, math.inf])
def test_what_is_not_finite_is_left_out(tmp_path, number):
  board = Board(tmp_path, 0)
  board.write({"return": number, "kl": 0.0}, 10)
  board.close()
  assert read(tmp_path).Tags()["scalars"] == ["policy/kl"]


def test_a_text_is_shown_as_it_is(tmp_path):
  board = Board(tmp_path, 0)
  board.write_text("config", ["seed=0", "ppo.gamma=0.99"], 0)
  board.close()
  (event,) = read(tmp_path).Tensors("config/text_summary")
  assert event.tensor_proto.string_val == [b"    seed=0\n    ppo.gamma=0.99"]


def test_events_after_the_step_at_which_a_run_is_resumed_are_hidden(tmp_path):
  for start, steps in ((0, (10, 20, 30)), (10, (15,))):
    board = Board(tmp_path, start)
    for step in steps:
      board.write({"return": float(step)}, step)
    board.close()
  assert [event.step for event in read(tmp_path).Scalars("episode/return")] == [10, 15]
