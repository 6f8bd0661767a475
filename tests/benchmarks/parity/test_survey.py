"""`python -m benchmarks.parity.survey folder`: each model once, by source, whatever the file does."""

import csv

import pytest

from benchmarks.parity import survey
from benchmarks.parity.survey import Plan
from benchmarks.parity.survey_record import LOADING, Record, agrees, counts

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


class Here:
  """A worker that runs tasks in this process, but for comparisons; it cannot end those of some files."""

  def __init__(self):
    self.judged, self.variants, self.endless = [], [], ()
    self.verdict = "agrees with MuJoCo C"

  def run(self, task, path, *arguments):
    if task is not survey.fingerprint and path.name in self.endless:
      raise survey.UnfinishedError("took more than 1 s of processor time")
    if task is not survey.judge:
      return task(path, *arguments)
    self.judged.append(path.name)
    self.variants += [arguments[-1]] if arguments[-1] else []
    return self.verdict

  def stop(self):
    pass


@pytest.fixture
def worker(monkeypatch):
  here = Here()
  monkeypatch.setattr(survey, "Worker", lambda _: here)
  return here


def files(rows):
  return [row.file for row in rows]


def test_finds_each_model_that_moves_once(tmp_path, worker):
  fill(tmp_path)
  rows = [*survey.survey(tmp_path, Plan(16), Record())]
  assert files(rows) == ["a/again/copy.xml", "b/implicit.xml", "b/arm.urdf"]
  assert [row.refusal[:6] for row in rows] == ["", "option", ""]


def test_prints_verdicts_and_a_table_by_source(tmp_path, capsys):
  fill(tmp_path)
  assert survey.main([str(tmp_path), "--states", "16", "--jobs", "2", "--precision", "float64"]) == 1
  printed = capsys.readouterr().out.splitlines()
  assert printed[0] == "a/again/copy.xml: float64: agrees with MuJoCo C"
  assert printed[1].startswith("b/implicit.xml: option: integrator implicit")
  *_, total = (line for line in printed if line.startswith("| "))
  assert total == "| all | 3 | 2 | 2 | 0 | 0 | 0 | 0 | 0 | 0 | 0 | 0 | 0 |"
  assert printed[-2].startswith("- `b/implicit.xml`: option: integrator implicit")
  assert printed[-1].startswith("- not counted, ")
  assert printed[-1].endswith(": 2, `a/part.xml`, `a/still.xml`")


def test_goes_on_where_it_was_ended(tmp_path, worker):
  """Verdicts that the results have are not asked for again, unless the file is another model."""
  fill(tmp_path)
  results = tmp_path / "results"
  for precisions, asked in ((["float64"], 2), (["float64"], 0), (["float64", "float32"], 2)):
    worker.judged.clear()
    rows = [*survey.survey(tmp_path, Plan(16, precisions=precisions), Record(results))]
    assert len(worker.judged) == asked
    assert len(rows) == 3
  (tmp_path / "b" / "arm.urdf").write_text(URDF.replace("continuous", "prismatic"))
  worker.judged.clear()
  assert [*survey.survey(tmp_path, Plan(16, precisions=["float64"]), Record(results))]
  assert worker.judged == ["arm.urdf"]
  with (results / "robot_files.csv").open() as file:
    written = list(csv.DictReader(file))
  assert [row["file"] for row in written] == ["a/again/copy.xml", "b/arm.urdf", "b/implicit.xml"]
  assert [row["float32"] for row in written] == ["agrees with MuJoCo C", "", ""]
  assert (results / "robots.csv").read_text().splitlines()[-1] == "all,3,2,2,0,0,0,1,0,0,0,0,0"


def test_variants_of_a_urdf_that_does_not_agree_are_compared(tmp_path, worker):
  fill(tmp_path)
  [*survey.survey(tmp_path, Plan(16), Record())]
  assert not worker.variants
  worker.verdict = "does not agree with MuJoCo C: qacc"
  rows = {row.file: row for row in survey.survey(tmp_path, Plan(16), Record())}
  assert worker.variants == ["apart", "floating"]
  assert rows["b/arm.urdf"].apart == worker.verdict
  assert rows["a/again/copy.xml"].apart == ""


def test_a_file_that_does_not_end_is_not_done(tmp_path, worker):
  fill(tmp_path)
  worker.endless = ["arm.urdf"]
  rows = {row.file: row for row in survey.survey(tmp_path, Plan(16), Record())}
  assert rows["b/arm.urdf"].float64 == f"{LOADING}took more than 1 s of processor time"
  counted = counts(rows.values())["b"]
  assert (counted["models"], counted["load"], counted["float64 not done"]) == (2, 0, 1)
  assert not agrees(rows["b/arm.urdf"])
