"""A visit to a GPU goes on whatever becomes of one of its steps, and says so."""

import pytest

from benchmarks import gpu
from gpurobot.config import ConfigError


def test_every_step_runs_and_its_output_is_kept(monkeypatch, tmp_path, capsys):
  steps = {
    "good": gpu.Step(["-c", "print('a figure: 1')"], 60),
    "bad": gpu.Step(["-c", "raise SystemExit(3)"], 60),
    "slow": gpu.Step(["-c", "import time; print('begun', flush=True); time.sleep(60)"], 3),
    "lacking": gpu.Step(["-c", ""], 60, before=["no-such-program"]),
    "last": gpu.Step(["-c", "print('a figure: 2')"], 60),
  }
  monkeypatch.setattr(gpu, "STEPS", steps)
  assert gpu.run([f"steps=[{','.join(steps)}]", f"folder={tmp_path}"]) == 2
  told = capsys.readouterr().out
  for outcome in (
    "good: done",
    "bad: failed: status 3",
    "slow: failed: not done after 3 s",
    "lacking: left out: there is no no-such-program",
    "last: done",
  ):
    assert f"== {outcome}, " in told
  assert "begun" in (tmp_path / "slow.txt").read_text()
  assert (tmp_path / "last.txt").read_text() == "a figure: 2\n"


def test_an_unknown_step_is_said_in_one_line():
  with pytest.raises(ConfigError, match=r"^steps: there is no 'engin'; there are graphs, iteration, "):
    gpu.run(["steps=[engin]"])


def test_every_step_names_what_there_is():
  for step in gpu.STEPS.values():
    for word in step.words:
      if word.startswith(("tests/", "train")):
        assert (gpu.ROOT / word).exists()
    if step.words[:1] == ["-m"] and step.words[1].startswith("benchmarks."):
      assert (gpu.ROOT / step.words[1].replace(".", "/")).with_suffix(".py").exists()
