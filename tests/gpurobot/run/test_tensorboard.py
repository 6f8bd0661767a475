import math
import re
import threading

import pytest
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
from tensorboard.plugins.custom_scalar.layout_pb2 import Layout
from tensorboard.plugins.hparams.plugin_data_pb2 import HParamsPluginData

from gpurobot.run import metrics
from gpurobot.run.tensorboard import TensorBoardLog


def read(folder) -> EventAccumulator:
  return EventAccumulator(str(folder)).Reload()


def test_scalars_have_groups_and_descriptions(tmp_path):
  board = TensorBoardLog(tmp_path, 0)
  for steps in (10, 20):
    board.write({"return": steps / 4, "forward_speed": 1.5, "steps": steps})
  board.close(failed=False)
  found = read(tmp_path)
  assert found.Tags()["scalars"] == ["episode/return", "task/forward_speed", "progress/steps"]
  assert [(event.step, event.value) for event in found.Scalars("episode/return")] == [(10, 2.5), (20, 5.0)]
  description = found.SummaryMetadata("episode/return").summary_description
  assert description.startswith("undiscounted sum of raw rewards")


@pytest.mark.parametrize("number", [math.nan, math.inf])
def test_what_is_not_finite_is_left_out(tmp_path, number):
  board = TensorBoardLog(tmp_path, 0)
  board.write({"return": number, "kl": 0.0, "steps": 10})
  board.close(failed=False)
  assert read(tmp_path).Tags()["scalars"] == ["policy/kl", "progress/steps"]


def test_settings_are_a_text_and_comparable_with_those_of_other_runs(tmp_path):
  board = TensorBoardLog(tmp_path, 0)
  board.write_config({"seed": 3, "ppo.hidden": [64, 64], "threads": None})
  board.close(failed=False)
  found = read(tmp_path)
  (event,) = found.Tensors("config/text_summary")
  assert event.tensor_proto.string_val == [b"    seed=3\n    ppo.hidden=[64, 64]\n    threads=None"]
  start = HParamsPluginData.FromString(found.PluginTagToContent("hparams")["_hparams_/session_start_info"])
  values = start.session_start_info.hparams
  assert values["seed"].number_value == 3
  assert values["ppo.hidden"].string_value == "[64, 64]"
  experiment = HParamsPluginData.FromString(found.PluginTagToContent("hparams")["_hparams_/experiment"])
  tags = [info.name.tag for info in experiment.experiment.metric_infos]
  assert tags == [metrics.find(column).tag for column in ("return", "length", "success", "steps_per_second")]


def test_terms_of_the_reward_share_a_chart(tmp_path):
  TensorBoardLog(tmp_path, 0).close(failed=False)
  (event,) = read(tmp_path).Tensors("custom_scalars__config__")
  [category] = Layout.FromString(event.tensor_proto.string_val[0]).category
  patterns = {chart.title: chart.multiline.tag[0] for chart in category.chart}
  columns = ("reward/progress", "reward/minor", "reward/min", "reward/max", "policy_loss", "time/physics")
  tags = [metrics.find(column).tag for column in columns]
  assert {title: [tag for tag in tags if re.fullmatch(found, tag)] for title, found in patterns.items()} == {
    "terms of the reward": ["reward/progress", "reward/minor"],
    "losses": ["loss/policy"],
    "shares of the time": ["time/physics"],
  }


def test_events_after_the_step_at_which_a_run_is_resumed_are_hidden(tmp_path):
  for start, steps in ((0, (10, 20, 30)), (10, (15,))):
    board = TensorBoardLog(tmp_path, start)
    for step in steps:
      board.write({"return": float(step), "steps": step})
    board.close(failed=False)
  assert [event.step for event in read(tmp_path).Scalars("episode/return")] == [10, 15]


def test_a_disk_that_fails_leaves_a_gap_and_no_thread(tmp_path, monkeypatch):
  threads, log = threading.active_count(), TensorBoardLog(tmp_path, 0)
  assert threading.active_count() == threads  # one that fails would print a traceback
  log.write({"return": 1.0, "steps": 1})
  (path,) = tmp_path.iterdir()
  monkeypatch.setattr(log, "_path", tmp_path)
  with pytest.raises(OSError, match="Is a directory"):
    log.write({"return": 2.0, "steps": 2})
  monkeypatch.setattr(log, "_path", path)
  log.write({"return": 3.0, "steps": 3})
  assert [event.step for event in read(tmp_path).Scalars("episode/return")] == [1, 3]
