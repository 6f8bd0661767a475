import pytest
import torch
from tensordict import TensorDict

from gpurobot import checkpoint
from gpurobot.checkpoint import CheckpointError


def content() -> dict:
  big = torch.arange(10.0)
  return {"a": [1, 2.5, "x", None], "b": {"c": big[2:4]}, "d": TensorDict({"e": torch.ones(2)}, [2])}


def test_what_is_written_is_read_back_with_weights_only(tmp_path):
  path = checkpoint.write(tmp_path / "new" / "run", content())
  found = torch.load(path, weights_only=True)
  assert found["a"] == [1, 2.5, "x", None]
  assert found["b"]["c"].tolist() == [2, 3]
  assert found["b"]["c"].untyped_storage().nbytes() == 8  # the view alone
  assert type(found["d"]) is dict
  assert checkpoint.read(path.parent)["a"] == checkpoint.read(str(path))["a"] == found["a"]


def test_an_interrupted_write_leaves_the_old_file(tmp_path, monkeypatch):
  checkpoint.write(tmp_path, {"number": 1})

  def torn(_, file):
    file.write(b"half")
    raise OSError("disk full")

  monkeypatch.setattr(torch, "save", torn)
  with pytest.raises(OSError, match="disk full"):
    checkpoint.write(tmp_path, {"number": 2})
  assert [path.name for path in tmp_path.iterdir()] == [checkpoint.NAME]
  assert checkpoint.read(tmp_path)["number"] == 1


def test_the_data_are_on_disk_before_the_name(tmp_path, monkeypatch):
  order = []
  monkeypatch.setattr(checkpoint.os, "fsync", lambda _: order.append("fsync"))
  replace = checkpoint.Path.replace
  monkeypatch.setattr(checkpoint.Path, "replace", lambda *paths: (order.append("replace"), replace(*paths)))
  checkpoint.write(tmp_path, {})
  assert order == ["fsync", "replace", "fsync"]


def test_what_is_no_checkpoint_is_named(tmp_path):
  (tmp_path / "run").mkdir()
  checkpoint.write(tmp_path / "run", {})
  with pytest.raises(
    CheckpointError, match=r"no checkpoint at '.*runn'; the nearest is '.*run/checkpoint.pt'$"
  ):
    checkpoint.find(tmp_path / "runn")
  (tmp_path / "bad.pt").write_bytes(b"no zip")
  with pytest.raises(CheckpointError, match=r"bad\.pt' is not a readable checkpoint"):
    checkpoint.read(tmp_path / "bad.pt")
  torch.save({"format": 1}, tmp_path / "old.pt")
  with pytest.raises(CheckpointError, match="is not a checkpoint of format 2"):
    checkpoint.read(tmp_path / "old.pt")


def test_a_restarted_run_resumes_its_checkpoint_if_it_has_one(tmp_path):
  assert checkpoint.words(None) == []
  assert checkpoint.words(str(tmp_path)) == [f"run_dir={tmp_path}"]
  checkpoint.write(tmp_path, {})
  assert checkpoint.words(str(tmp_path)) == [f"resume={tmp_path}"]
