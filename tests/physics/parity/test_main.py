"""`python -m physics.parity`: the table, and what the exit code says."""

import dataclasses
import re
from types import SimpleNamespace

import numpy as np
import pytest

from physics.parity import __main__ as program
from physics.parity.compare import OTHER_CORNERS, STATES_OPEN
from physics.parity.finding import Finding
from physics.parity.open_loop import ROLLOUT
from physics.parity.reference import ITERATIONS
from physics.parity.verdict import verdict
from tests.physics.conftest import CASES

SLIDER = """<mujoco><worldbody><body><joint type="slide" range="-1 1"/><geom size="0.1"/></body></worldbody>
  </mujoco>"""


def run(capsys, *arguments):
  code = program.main([*arguments, "--states", "32"])
  return code, *capsys.readouterr()


def test_prints_a_table_and_agrees(tmp_path, capsys):
  path = tmp_path / "slider.xml"
  path.write_text(SLIDER)
  code, printed, complaints = run(capsys, str(path))
  assert (code, complaints) == (0, "")
  assert "float64, uncompiled" in printed
  assert "float32 kernel" in printed
  assert printed.splitlines()[-1] == "agrees with MuJoCo C"


def test_a_file_of_few_iterations_is_compared_converged_and_as_it_stops(tmp_path, capsys):
  text, path = CASES["self_contact"].read_text(), tmp_path / "hasty.xml"
  found = {}
  for iterations in (1, ITERATIONS):
    path.write_text(text.replace("<option", f'<option iterations="{iterations}"', 1))
    code, printed, _ = run(capsys, str(path))
    stopped = [line for line in printed.splitlines() if line.startswith("stopped after")]
    found[iterations] = code, printed.splitlines()[-1], stopped
  assert found[ITERATIONS] == (0, "agrees with MuJoCo C", [])
  code, verdict, (stopped,) = found[1]
  assert (code, verdict) == (0, "agrees with MuJoCo C where both solvers converge")
  assert stopped.startswith("stopped after iterations=1, as the file asks: qacc is off by ")
  errors = [float(number) for number in re.findall(r"\d\.\de[+-]\d\d", stopped)]
  assert len(errors) == 4
  assert min(errors[2:]) > 0.01  # of engine and MuJoCo C in a tenth of the states: one iteration is too few


def test_disagreement_is_named_and_told_by_the_exit_code(monkeypatch, capsys):
  load = program.load_model
  monkeypatch.setattr(program, "load_model", lambda path: dataclasses.replace(load(path), timestep=0.01))
  code, printed, _ = run(capsys, str(CASES["springs"]))
  assert code == 1
  last = printed.splitlines()[-1]
  assert last.startswith("does not agree with MuJoCo C: next q")
  assert "qM" not in last
  assert "<- too large" in printed


def test_open_choices_excuse_a_rollout_and_nothing_else():
  def finding(quantity, error):
    return Finding(quantity, np.array([error]), np.array([0.05]))

  parts, agrees = finding(ROLLOUT, 0.3), finding("qacc", 0.01)
  all_open = [finding(STATES_OPEN, 0.6), finding(OTHER_CORNERS, 0.4)]
  left_open, differs = finding(STATES_OPEN, 0.41), finding("qacc", 0.3)
  found = [
    verdict(findings, SimpleNamespace(iterations=ITERATIONS))
    for findings in (
      [agrees],
      [agrees, left_open, parts],
      [agrees, parts],
      [differs, left_open, left_open],
      all_open,
      [*all_open, finding("qM", 0.3)],
    )
  ]
  assert found == [
    "agrees with MuJoCo C",
    "agrees with MuJoCo C, but 41% of the states are left open",
    "does not agree with MuJoCo C: rollout qpos",
    "does not agree with MuJoCo C: qacc, states left open",
    "agrees with MuJoCo C without contacts, but all of the states are left open",
    "does not agree with MuJoCo C: states left open, with other corners, qM",
  ]


def test_what_cannot_be_compared_is_told_in_one_line(tmp_path, capsys):
  path = tmp_path / "bad.xml"
  for text in ("<mujoco><wrong/></mujoco>", '<mujoco><option integrator="implicit"/></mujoco>'):
    path.write_text(text)
    code, printed, complaints = run(capsys, str(path))
    assert (code, printed) == (2, "")
    assert complaints.startswith("error: ")
    assert complaints.count("\n") == 1
  assert run(capsys, str(tmp_path / "none.xml"))[2].startswith("error: no model file")


def test_too_few_states_are_told(capsys):
  with pytest.raises(SystemExit, match="2"):
    program.main(["robot.xml", "--states", "8"])
  assert "--states 8: a rollout needs 16 or more" in capsys.readouterr().err
