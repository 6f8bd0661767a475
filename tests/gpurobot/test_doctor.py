import importlib.util
import re

import pytest

from gpurobot import doctor

TRAINED = re.compile(r"[1-9]\d* iterations, [\d,]+ steps/s, return ")  # until a first episode has ended


@pytest.fixture(scope="module")
def kept() -> dict[str, str]:
  """What is found here, but for the checks."""
  return {
    name: fact for part in (doctor.versions, doctor.devices, doctor.surroundings) for name, fact in part()
  }


def facts(text: str) -> dict[str, str]:
  return dict(line.split(": ", 1) for line in text.splitlines())


def test_it_tells_versions_devices_cache_and_renderer(kept):
  assert {*doctor.PACKAGES, "python", "cpu", "kernel cache", "renderer", "extra viewer"} <= {*kept}
  assert kept["torch"].startswith("2.")
  assert " cores, vector instructions: " in kept["cpu"]
  assert " files, " in kept["kernel cache"]


def test_it_says_how_to_install_what_is_missing(monkeypatch):
  find = importlib.util.find_spec
  monkeypatch.setattr(importlib.util, "find_spec", lambda name: None if name == "viser" else find(name))
  assert dict(doctor.versions())["extra viewer"] == "viser missing: pip install 'gpurobot[viewer]'"


def test_a_sound_installation_steps_trains_and_saves(monkeypatch, capsys):
  monkeypatch.setattr(doctor, "surroundings", lambda: iter(()))
  doctor.main(["device=cpu", "seconds=0"])
  found = facts(capsys.readouterr().out)
  assert found["physics on cpu"].startswith("20 steps agree with MuJoCo C to ")
  assert TRAINED.match(found["training on cpu"])
  assert found["training on cpu"].endswith(" MB")


def test_what_fails_is_told_and_the_rest_is_tried(monkeypatch, capsys):
  monkeypatch.setattr(doctor, "surroundings", lambda: iter(()))
  monkeypatch.setattr(doctor, "CLOSE", 0.0)
  with pytest.raises(SystemExit, match="1"):
    doctor.main(["device=cpu", "seconds=0"])
  found = facts(capsys.readouterr().out)
  assert found["physics on cpu"].startswith("FAILED: ConfigError: after 20 steps positions differ by ")
  assert TRAINED.match(found["training on cpu"])
  with pytest.raises(ValueError, match="from MuJoCo C's"):
    doctor.main(["device=cpu", "seconds=0", "debug=true"])
