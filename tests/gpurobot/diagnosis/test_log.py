"""Logs that cannot be used end in one line; columns of anybody's log come under our keys."""

import json

import numpy as np
import pytest

from gpurobot.diagnosis.log import read
from gpurobot.settings.config import ConfigError
from tests.gpurobot.deploy.test_manifest import facts

STEPS = 120


@pytest.fixture(scope="module")
def known():
  return facts("quadruped", see_velocity=False)


def columns(known, **other):
  """Return a log's columns, without sense; None leaves one out."""
  joints = [name for sensor in known["sensors"] if sensor["name"] == "angles" for name in sensor["columns"]]
  rows = np.arange(STEPS * 12.0).reshape(STEPS, 12)
  own = {"time": 0.02 * np.arange(STEPS), "robot.angles": rows, "action": rows, "robot.joints": joints}
  return {
    key: value for key, value in {**own, "manifest": json.dumps(known), **other}.items() if value is not None
  }


def write(folder, content):
  np.savez(folder / "log.npz", **content)
  return folder / "log.npz"


def test_a_log_is_read(known, tmp_path):
  own = read(write(tmp_path, columns(known, note="what nobody knows")), known)
  assert own["action"].shape == (STEPS, 12)
  assert own.has("time", "action")
  assert not own.has("ctrl")
  assert own.of_joints("robot.angles", ["FL_calf", "FR_hip"])[1].tolist() == [17.0, 12.0]


def broken(value, row, number):
  changed = value.copy()
  changed[row] = number
  return changed


TIME, ROWS = 0.02 * np.arange(STEPS), np.zeros((STEPS, 12))


@pytest.mark.parametrize(
  ("other", "message"),
  [
    ({"action": broken(ROWS, (7, 3), np.nan)}, "action is not finite in row 7 of 120"),
    ({"time": np.where(TIME > 1, TIME + 3, TIME)}, r"a gap of 3.02 s in time after row 50"),
    ({"time": broken(TIME, 9, 0.0)}, "time stands still or goes back after row 8"),
    ({"action": ROWS[:, :5]}, r"action has the shape \(120, 5\), a row of the export's has \(12,\)"),
    ({"action": ROWS[::2]}, "action has 60 rows, others have 120: log all at one rate"),
    ({"robot.joints": [f"motor{index}" for index in range(12)]}, "its robot has no joint 'FR_hip'"),
    ({"action": np.array(["much"] * STEPS)}, "something else than numbers"),
    ({"manifest": json.dumps({"sensors": []})}, "a log of another export, its sensors differ"),
    ({"time": None, "robot.angles": None, "action": None}, "has none of the keys time, sensor_time"),
    ({"time": TIME[:20], "robot.angles": ROWS[:20], "action": ROWS[:20]}, "20 control steps: at least 100"),
  ],
)
def test_what_cannot_be_used_is_told(other, message, known, tmp_path):
  with pytest.raises(ConfigError, match=message):
    read(write(tmp_path, columns(known, **other)), known)


def test_there_is_no_log(known, tmp_path):
  with pytest.raises(ConfigError, match="there is no log"):
    read(tmp_path / "none.npz", known)
  (tmp_path / "text.npz").write_text("hello")
  with pytest.raises(ConfigError, match="is no log"):
    read(tmp_path / "text.npz", known)


@pytest.mark.parametrize("kind", ["json", "toml"])
def test_a_csv_has_its_own_names(kind, known, tmp_path):
  names = [f"q{index}" for index in range(12)]
  rows = np.column_stack([TIME, np.arange(STEPS * 12).reshape(STEPS, 12)])
  np.savetxt(tmp_path / "log.csv", rows, delimiter=",", header=",".join(["t", *names]), comments="")
  mapping = tmp_path / f"names.{kind}"
  given = {"time": "t", "sensor.angles": names[::-1]}
  toml = "\n".join(f'"{key}" = {json.dumps(value)}' for key, value in given.items())
  mapping.write_text(json.dumps(given) if kind == "json" else toml)
  own = read(tmp_path / "log.csv", known, mapping)
  assert own["time"].tolist() == TIME.tolist()
  assert own["sensor.angles"][0].tolist() == [*range(11, -1, -1)]
  mapping.write_text(mapping.read_text().replace("q3", "angle3"))
  with pytest.raises(
    ConfigError, match=f"names.{kind}: .*log.csv' has no 'angle3' for sensor.angles; it has t, q0"
  ):
    read(tmp_path / "log.csv", known, mapping)
  mapping.write_text("[")
  with pytest.raises(ConfigError, match="cannot be read"):
    read(tmp_path / "log.csv", known, mapping)


def test_a_csv_with_a_short_row_is_told(known, tmp_path):
  (tmp_path / "log.csv").write_text("t,q\n0,1\n1\n")
  with pytest.raises(ConfigError, match="row 3 has 1 columns, the head has 2"):
    read(tmp_path / "log.csv", known)
