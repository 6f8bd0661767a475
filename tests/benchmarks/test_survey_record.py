"""The record of a survey: what its verdicts count as, and its tables."""

from benchmarks.survey_record import Record, Row, agrees, counts, outcome, table

WELL, LATE = "agrees with MuJoCo C", "took more than 1 s of processor time"
OPEN = "agrees with MuJoCo C where both solvers converge, but 9% of the states are left open"
DIFFERS = "does not agree with MuJoCo C: qacc"


def test_the_kinds_of_verdicts():
  assert [outcome(verdict) for verdict in (WELL, OPEN, DIFFERS, LATE)] == [
    "agree",
    "open",
    "differ",
    "not done",
  ]


def test_counts_by_source_and_names_what_does_not_agree():
  rows = [
    Row("s/a.xml", "1", "", WELL, DIFFERS),
    Row("s/b.xml", "2", "", OPEN),
    Row("t/c.xml", "3", "plugin 'p': not supported"),
    Row("t/d.xml", "4", "", LATE, WELL),
  ]
  assert [*counts(rows)["all"].values()] == ["all", 4, 3, 1, 1, 0, 1, 1, 0, 1, 0, 0, 0]
  lines = [*table(rows)]
  assert lines[2:5] == [
    "| s | 2 | 2 | 1 | 1 | 0 | 0 | 0 | 0 | 1 | 0 | 0 | 0 |",
    "| t | 2 | 1 | 0 | 0 | 0 | 1 | 1 | 0 | 0 | 0 | 0 | 0 |",
    "| all | 4 | 3 | 1 | 1 | 0 | 1 | 1 | 0 | 1 | 0 | 0 | 0 |",
  ]
  assert lines[-4:] == [
    f"- `s/a.xml`: float32: {DIFFERS}",
    f"- `s/b.xml`: float64: {OPEN}",
    "- `t/c.xml`: plugin 'p': not supported",
    f"- `t/d.xml`: float64: {LATE}",
  ]
  assert not any(map(agrees, rows))
  assert agrees(Row("s/e.xml", "5", "", WELL))


def test_counts_what_agrees_as_a_variant_where_it_does_not_as_it_is():
  rows = [
    Row("s/a.urdf", "1", "", OPEN, "", WELL, OPEN),
    Row("s/b.urdf", "2", "", DIFFERS, "", WELL, WELL),
    Row("s/c.urdf", "3", "", WELL, "", WELL, WELL),  # of a survey before it agreed
  ]
  counted = counts(rows)["s"]
  assert [counted[name] for name in ("float64 agree", "agree apart", "agree floating")] == [1, 2, 1]
  assert [*table(rows)][-2:] == [f"- `s/b.urdf`: {name}: {WELL}" for name in ("apart", "floating")]


def test_a_row_returns_from_the_file_for_the_same_model_alone(tmp_path):
  row = Row("s/a,b.xml", "1", "", 'agrees, "nearly"')
  Record(tmp_path).add(row)
  again = Record(tmp_path)
  assert again.known(row.file, "1") == row
  assert again.known(row.file, "2") is None
  again.keep([])
  assert [*Record(tmp_path)] == []
