from gpurobot.run import csv_log


def test_rows_are_appended_in_the_columns_of_the_first(tmp_path):
  path = tmp_path / "metrics.csv"
  assert csv_log.read(path) == csv_log.cut(path, 3) == []
  assert not any(tmp_path.iterdir())
  csv_log.append(path, {"steps": 1, "return": 0.5})
  csv_log.append(path, {"return": 2.5, "steps": 2})
  csv_log.append(path, {"steps": 3})
  assert path.read_bytes() == b"steps,return\r\n1,0.5\r\n2,2.5\r\n3,nan\r\n"


def test_a_later_column_is_added_with_nan_in_the_rows_before(tmp_path):
  path = tmp_path / "metrics.csv"
  csv_log.append(path, {"steps": 1, "return": 0.5})
  csv_log.append(path, {"new": 3, "steps": 2, "return": 2.5})
  csv_log.append(path, {"steps": 3, "return": 4.5, "new": 6})
  assert path.read_bytes() == b"steps,return,new\r\n1,0.5,nan\r\n2,2.5,3\r\n3,4.5,6\r\n"


def test_what_came_after_a_checkpoint_is_cut_and_so_is_half_a_line(tmp_path):
  path = tmp_path / "metrics.csv"
  for steps in range(5):
    csv_log.append(path, {"steps": steps, "return": 10 * steps})
  whole = path.read_bytes()
  path.write_bytes(whole[:-2])
  assert [row["steps"] for row in csv_log.read(path)] == ["0", "1", "2", "3"]
  assert csv_log.cut(path, 2) == [{"steps": str(n), "return": str(10 * n)} for n in range(3)]
  assert whole.startswith(path.read_bytes())
  csv_log.append(path, {"steps": 3, "return": 30})
  assert [row["return"] for row in csv_log.read(path)] == ["0", "10", "20", "30"]
  assert csv_log.cut(path, -1) == []
  csv_log.append(path, {"steps": 7})
  assert path.read_text().split() == ["steps", "7"]
