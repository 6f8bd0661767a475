"""The record of a survey: what its verdicts count as, and its tables."""

from benchmarks.parity.survey_record import Record, Row, agrees, counts, table

WELL, LATE = "agrees with MuJoCo C", "took more than 1 s of processor time"
OPEN = "agrees with MuJoCo C where both solvers converge, but 9% of the states are left open"
DIFFERS = "does not agree with MuJoCo C: qacc"


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


def test_a_row_returns_from_the_file_for_the_same_model_alone(tmp_path):
  row = Row("s/a,b.xml", "1", "", 'agrees, "nearly"')
  Record(tmp_path).add(row)
  again = Record(tmp_path)
  assert again.known(row.file, "1") == row
  assert again.known(row.file, "2") is None
  again.keep([])
  assert [*Record(tmp_path)] == []
