import pytest

from gpurobot.settings.config import TrainConfig
from gpurobot.shell import help_text


@pytest.mark.parametrize("columns", [60, 140])
def test_it_is_as_wide_as_the_terminal(columns, monkeypatch):
  monkeypatch.setenv("COLUMNS", str(columns))
  text = help_text.of_settings(TrainConfig(), "train.py")
  assert columns * 0.8 < max(map(len, text.splitlines())) <= columns
  assert " ".join(text.split()).count("minibatch / reference_minibatch: none, sqrt, linear") == 1
