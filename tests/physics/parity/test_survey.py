"""`python -m physics.parity folder`: each model once, by source, whatever the file does."""

import sys
from pathlib import Path

import pytest

from physics.parity import __main__ as program
from physics.parity import survey
from physics.parity.survey import Result, compare_file, distinct_models, table
from tests.instances import thorough

SLIDER = """<mujoco>{}<worldbody><body><joint type="slide" range="-1 1"/><geom size="0.1"/></body></worldbody>
  </mujoco>"""
IMPLICIT = SLIDER.format('<option integrator="implicit"/>')
URDF = """<robot name="r"><link name="base"/><link name="arm"><inertial><mass value="1"/>
  <inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/></inertial></link>
  <joint name="j" type="continuous"><parent link="base"/><child link="arm"/></joint></robot>"""


def fill(folder):
  files = {
    "a/slider.xml": SLIDER.format(""),
    "a/again/copy.xml": SLIDER.format(""),
    "a/part.xml": "<mujocoinclude><body/></mujocoinclude>",
    "a/still.xml": "<mujoco/>",
    "b/implicit.xml": IMPLICIT,
    "b/arm.urdf": URDF,
    "b/readme.txt": "",
  }
  for name, text in files.items():
    (folder / name).parent.mkdir(parents=True, exist_ok=True)
    (folder / name).write_text(text)


def test_finds_each_model_that_moves_once(tmp_path):
  fill(tmp_path)
  found = [str(path.relative_to(tmp_path)) for path, _ in distinct_models(tmp_path)]
  assert found == ["a/again/copy.xml", "b/arm.urdf", "b/implicit.xml"]


def test_prints_outcomes_and_a_table_by_source(tmp_path, capsys):
  fill(tmp_path)
  assert program.main([str(tmp_path), "--states", "16", "--jobs", "2"]) == 1
  printed = capsys.readouterr().out.splitlines()
  assert printed[:3] == ["a/again/copy.xml: agrees", "b/arm.urdf: agrees", "b/implicit.xml: refused"]
  rows = [line for line in printed if line.startswith("| ")]
  assert rows == [
    "| source | models | load | compared | agree | open |",
    "| a | 1 | 1 | 1 | 1 | 0 |",
    "| b | 2 | 1 | 1 | 1 | 0 |",
    "| all | 3 | 2 | 2 | 2 | 0 |",
  ]
  assert printed[-1].startswith("- `b/implicit.xml`: option: integrator implicit")


def test_draws_the_same_models_of_a_source_by_the_seed():
  paths = [Path("a", f"{number}.xml") for number in range(20)]
  drawn = survey.draw("a", paths, 3, seed=0)
  assert len({*drawn} & {*paths}) == 3
  assert drawn == survey.draw("a", paths, 3, seed=0)
  assert drawn != survey.draw("a", paths, 3, seed=1)
  assert drawn != survey.draw("b", paths, 3, seed=0)
  assert survey.draw("a", paths[:1], 3, seed=0) == paths[:1]


@thorough
def test_compares_a_sample_of_each_source(tmp_path, capsys):
  fill(tmp_path)
  (tmp_path / "b" / "other.xml").write_text(SLIDER.format('<option timestep="0.01"/>'))
  assert program.main([str(tmp_path), "--states", "16", "--sample", "1"]) == 1
  printed = capsys.readouterr().out
  assert "| b | 3 | 2 | 1 | 1 | 0 |" in printed
  assert "| all | 4 | 3 | 2 | 2 | 0 |" in printed
  assert printed.count("agrees") == 2
  with pytest.raises(SystemExit):
    program.main([str(tmp_path), "--sample", "0"])
  assert "--sample 0: it has to be 1 or more" in capsys.readouterr().err


def test_a_file_cannot_end_or_hold_up_the_survey(tmp_path, monkeypatch):
  path = tmp_path / "slider.xml"
  path.write_text(SLIDER.format(""))
  shebang = f"#!{sys.executable}\n"
  assert compare_file(path, [], limit=0.01) == Result(path, survey.UNFINISHED, "took more than 0.01 s")
  crash = tmp_path / "python"
  crash.write_text(f"{shebang}import os\nos.abort()\n")
  crash.chmod(0o755)
  monkeypatch.setattr(survey.sys, "executable", str(crash))
  assert compare_file(path, []) == Result(path, survey.UNFINISHED, "ended with status -6: ")
  crash.write_text(f"{shebang}raise KeyError(1)\n")
  assert compare_file(path, []) == Result(path, survey.UNFINISHED, "ended with status 1: KeyError: 1")


def test_tells_an_open_comparison_by_its_last_line(tmp_path, monkeypatch):
  verdict = "agrees with MuJoCo C, but 41% of the states are left open"
  script = tmp_path / "python"
  script.write_text(f"#!{sys.executable}\nprint({verdict!r})\nraise SystemExit(1)\n")
  script.chmod(0o755)
  monkeypatch.setattr(survey.sys, "executable", str(script))
  path = tmp_path / "x.xml"
  assert compare_file(path, []) == Result(path, survey.OPEN, verdict)


def test_what_differs_or_is_open_loads():
  differs = Result(Path("s/x.xml"), survey.DIFFERS, "does not agree with MuJoCo C: qacc")
  is_open = Result(Path("s/y.xml"), survey.OPEN, "agrees with MuJoCo C, but 9% of the states are left open")
  lines = list(table(Path(), [differs, is_open]))
  assert lines[2:4] == ["| s | 2 | 2 | 2 | 0 | 1 |", "| all | 2 | 2 | 2 | 0 | 1 |"]
  assert lines[-2:] == [f"- `{each.path}`: {each.verdict}" for each in (differs, is_open)]
