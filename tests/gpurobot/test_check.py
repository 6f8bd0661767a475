"""`python -m gpurobot.check`: what it prints, and mistakes in one line."""

import json

import numpy as np
import pytest

from gpurobot import check
from tests.gpurobot.diagnosis.test_diagnose import export, walk
from tests.mistakes.told import told

__all__ = ["export"]  # the fixture


@pytest.fixture(scope="module")
def logs(export, tmp_path_factory):
  """Return files of logs, by fault."""
  folder = tmp_path_factory.mktemp("logs")
  for kind in ("", "drift", "action_scale"):
    np.savez(folder / f"{kind or 'clean'}.npz", **walk(export, kind)[0])
  return folder


def test_a_fault_is_named_with_evidence_and_mend(export, logs, capsys):
  check.main([str(logs / "action_scale.npz"), f"policy={export}"])
  first, *_, times = capsys.readouterr().out.splitlines()
  assert first.startswith("1. action scaled otherwise: targets are ")
  assert first.endswith(" times as large; send offset + action @ gain of `control`")
  assert times.startswith("200 control steps of 20")
  assert "from sensors to torques" in times


def test_what_the_reference_has_too_is_last(export, logs, capsys):
  both = dict(np.load(logs / "drift.npz")) | {"ctrl": np.load(logs / "drift.npz")["ctrl"] + 0.3}
  np.savez(logs / "both.npz", **both)
  check.main([str(logs / "both.npz"), f"policy={export}", f"reference={logs / 'drift.npz'}"])
  lines = capsys.readouterr().out.splitlines()
  assert next(line for line in lines if "clocks drift apart" in line).endswith(" (so does the reference)")
  assert lines[0].startswith("1. target is not the action's")


def test_a_clean_log_of_some_columns_tells_what_it_lacks(export, logs, tmp_path, capsys):
  content = np.load(logs / "clean.npz")
  np.savetxt(tmp_path / "log.csv", np.column_stack([content["time"], content["sensor_time"]]), delimiter=",",
             header="t,robot", comments="")  # fmt: skip
  (tmp_path / "names.json").write_text(json.dumps({"time": "t", "sensor_time": "robot"}))
  words = [str(tmp_path / "log.csv"), f"policy={export}", f"columns={tmp_path / 'names.json'}"]
  check.main(words)
  lines = capsys.readouterr().out.splitlines()
  assert lines[0] == "nothing differs from the training"
  assert "not tested: speeds from angles (no robot.angles, robot.speeds)" in lines


def test_mistakes(export, logs, tmp_path, capsys):
  log = str(logs / "clean.npz")
  assert "log and policy are needed" in told(capsys, check.main, [log])
  assert "has no policy.pt: name a folder" in told(capsys, check.main, [log, f"policy={tmp_path}"])
  (tmp_path / "export").symlink_to(export)
  message = f"'{tmp_path}' has no policy.pt: name the export in it, {tmp_path / 'export'}"
  assert message in told(capsys, check.main, [log, f"policy={tmp_path}"])
  assert "there is no log 'none.npz'" in told(capsys, check.main, ["log=none.npz", f"policy={export}"])
