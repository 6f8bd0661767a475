"""`python -m physics.parity`: the table, and what the exit code says."""

import dataclasses

from physics.parity import __main__ as program
from physics.parity.reference import ITERATIONS
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


def test_a_file_of_few_iterations_is_told_how_to_be_compared(tmp_path, capsys):
  text, path = CASES["condim"].read_text(), tmp_path / "hasty.xml"
  found = {}
  for iterations in (1, ITERATIONS):
    path.write_text(text.replace("<option", f'<option iterations="{iterations}"', 1))
    code, printed, _ = run(capsys, str(path))
    found[iterations] = (
      code,
      [line for line in printed.splitlines() if line.startswith("note: the file")],
    )
  note = (
    "note: the file stops the engine's solver after iterations=1, but the reference's stops after 40; "
    'to compare them, set <option iterations="40"/> in the file'
  )
  assert found == {1: (1, [note]), ITERATIONS: (0, [])}


def test_disagreement_is_named_and_told_by_the_exit_code(monkeypatch, capsys):
  load = program.load_model
  monkeypatch.setattr(program, "load_model", lambda path: dataclasses.replace(load(path), timestep=0.01))
  code, printed, _ = run(capsys, str(CASES["springs"]))
  assert code == 1
  last = printed.splitlines()[-1]
  assert last.startswith("does not agree with MuJoCo C: next q")
  assert "qM" not in last
  assert "<- too large" in printed


def test_what_cannot_be_compared_is_told_in_one_line(tmp_path, capsys):
  path = tmp_path / "bad.xml"
  for text in ("<mujoco><wrong/></mujoco>", '<mujoco><option noslip_iterations="2"/></mujoco>'):
    path.write_text(text)
    code, printed, complaints = run(capsys, str(path))
    assert (code, printed) == (2, "")
    assert complaints.startswith("error: ")
    assert complaints.count("\n") == 1
  assert run(capsys, str(tmp_path / "none.xml"))[2].startswith("error: no model file")
