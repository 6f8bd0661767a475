import os
import resource
from pathlib import Path

import pytest

from gpurobot.run import files


def test_the_data_are_on_disk_before_the_name(tmp_path, monkeypatch):
  order, replace = [], Path.replace
  monkeypatch.setattr(os, "fsync", lambda _: order.append("fsync"))
  monkeypatch.setattr(Path, "replace", lambda *paths: (order.append(paths[1].name), replace(*paths)))
  with files.rewrite(tmp_path / "new") as file:
    file.write(b"1")
  assert order == ["fsync", "new", "fsync"]


def test_a_write_that_fails_leaves_the_old_file(tmp_path):
  path = tmp_path / "file"
  path.write_bytes(b"old")

  def fail():
    with files.rewrite(path) as file:
      file.write(b"half")
      raise OSError("disk full")

  with pytest.raises(OSError, match="disk full"):
    fail()
  assert [found.read_bytes() for found in tmp_path.iterdir()] == [b"old"]


class Killed(BaseException):
  """The process ends here."""


@pytest.mark.parametrize("survived", range(4))
def test_whenever_a_write_is_cut_off_a_whole_file_is_left(tmp_path, monkeypatch, survived):
  """Of three renames so many happen; what is damaged is never all that is left."""
  path, previous = tmp_path / "file", tmp_path / "previous"
  path.write_bytes(b"damaged")
  previous.write_bytes(b"whole")
  replace, done = Path.replace, []

  def cut(*paths):
    if len(done) == survived:
      raise Killed
    done.append(replace(*paths))

  monkeypatch.setattr(Path, "replace", cut)
  monkeypatch.setattr(Path, "unlink", lambda *_, **__: None)
  try:
    with files.rewrite(path, previous) as file:
      file.write(b"new and whole")
  except Killed:
    assert survived < 3
  left = [file.read_bytes() for file in (path, previous) if file.exists()]
  assert any(b"whole" in content for content in left)
  assert (b"new and whole" in left) == (survived >= 2)


def test_what_does_not_fit_is_not_appended_at_all(tmp_path):
  path = tmp_path / "file"
  files.append(path, b"whole")
  limits = resource.getrlimit(resource.RLIMIT_FSIZE)
  resource.setrlimit(resource.RLIMIT_FSIZE, (8, limits[1]))  # as `ulimit -f`; a full disk ends alike
  try:
    with pytest.raises(OSError, match="File too large"):
      files.append(path, b"too long")
  finally:
    resource.setrlimit(resource.RLIMIT_FSIZE, limits)
  assert path.read_bytes() == b"whole"


@pytest.mark.parametrize("text", ["{", "[1]", "\xff", "[" * 100_000, '{"task": 3}', "{}"])
def test_damaged_json_is_named(tmp_path, text):
  path = tmp_path / "config.json"
  path.write_text(text, "latin-1")
  with pytest.raises(ValueError, match=rf"^'{path}' is .*: move it elsewhere$"):
    files.read_json(path, task=str)


def test_a_pipe_is_named_and_not_waited_for(tmp_path):
  path = tmp_path / "config.json"
  os.mkfifo(path)
  with pytest.raises(OSError, match=rf"^'{path}' is no file: move it elsewhere$"):
    files.read_json(path)
