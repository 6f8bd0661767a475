from gpurobot.run.metrics import METRICS, find


def test_each_column_and_tag_is_there_once_with_a_group_and_a_short_description():
  assert len({metric.column for metric in METRICS}) == len(METRICS)
  assert len({metric.tag for metric in METRICS}) == len(METRICS)
  assert [metric for metric in METRICS if metric.tag.count("/") != 1] == []
  assert [metric for metric in METRICS if not 10 < len(metric.description) < 90] == []


TAGS = {
  "return": "episode/return",
  "reward/progress": "reward/progress",
  "time/physics": "time/physics",
  "steps_per_second": "speed/all",
  "steps_per_second/physics": "speed/physics",
  "forward_speed": "task/forward_speed",
}


def test_a_column_finds_its_tag():
  assert dict(find(column)[:2] for column in TAGS) == TAGS
