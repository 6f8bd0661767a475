"""Steps on a GPU: they go on after a failure, and keep what their commands print."""

import importlib.util
import shlex

import pytest

from benchmarks.gpu import __main__ as gpu


def test_a_step_goes_on_after_a_failure_and_keeps_its_output(monkeypatch, tmp_path, capfd):
  commands = ["-c 'print(1)'", "-c 'raise SystemExit(3)'", "-c 'print(2)'"]
  monkeypatch.setattr(gpu, "STEPS", {"step": gpu.Step("three commands", 1, commands)})
  monkeypatch.setattr(gpu, "FOLDER", tmp_path)
  assert gpu.run(["step"]) == 1
  assert (tmp_path / "step.txt").read_text() == "1\n2\n" == capfd.readouterr().out
  assert gpu.run([]) == 0
  assert capfd.readouterr().out == "step             1 min  three commands\n"
  with pytest.raises(SystemExit, match="error: no 'stp' to measure; there are: step"):
    gpu.run(["stp"])


def test_every_command_names_a_module_and_files_that_exist():
  for step in gpu.STEPS.values():
    for command in step.commands:
      words = shlex.split(command)
      assert words[0] != "-m" or importlib.util.find_spec(words[1])
      for path in (word for word in words if word.startswith(("tests/", "train"))):
        assert (gpu.ROOT / path).exists()
