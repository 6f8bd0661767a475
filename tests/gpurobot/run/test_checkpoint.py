import dataclasses
import errno
import shutil
import zipfile
from pathlib import Path

import pytest
import torch
from tensordict import TensorDict

import train
from gpurobot.device.distributed import World
from gpurobot.run import checkpoint
from gpurobot.run.checkpoint import CheckpointError
from gpurobot.settings.config import defaults as config_of
from gpurobot.settings.config import to_dict
from tests.gpurobot import toy

RUN = {"config": {"task": "ant"}}  # what every checkpoint has


def content() -> dict:
  big = torch.arange(10.0)
  return RUN | {"a": [1, 2.5, "x", None], "b": {"c": big[2:4]}, "d": TensorDict({"e": torch.ones(2)}, [2])}


def test_what_is_written_is_read_back_with_weights_only(tmp_path):
  path = checkpoint.write(tmp_path / "new" / "run", content())
  found = torch.load(path, weights_only=True)
  assert found["a"] == [1, 2.5, "x", None]
  assert found["b"]["c"].tolist() == [2, 3]
  assert found["b"]["c"].untyped_storage().nbytes() == 8  # the view alone
  assert type(found["d"]) is dict
  assert checkpoint.read(path.parent)["a"] == checkpoint.read(str(path))["a"] == found["a"]


def test_what_is_no_checkpoint_is_named(tmp_path):
  (tmp_path / "run").mkdir()
  checkpoint.write(tmp_path / "run", {})
  with pytest.raises(CheckpointError, match=r"no checkpoint at '.*runn'; .* '.*run/checkpoint.pt'$"):
    checkpoint.find(tmp_path / "runn")
  torch.save({"format": 3}, tmp_path / "new.pt")
  with pytest.raises(CheckpointError, match=r"new\.pt' is a checkpoint of format 3, of a newer gpurobot"):
    checkpoint.read(tmp_path / "new.pt")


def damage(path):
  """Yield the content of a file, cut short or with one bit turned, in many places."""
  whole = path.read_bytes()
  for end in range(0, len(whole), len(whole) // 50):
    yield whole[:end]
  for place in range(0, len(whole), 7):
    yield whole[:place] + bytes([whole[place] ^ 16]) + whole[place + 1 :]


def test_no_damage_is_read_as_numbers(tmp_path):
  """What lies between the parts of the file may change: nothing depends on it."""
  path = checkpoint.write(tmp_path, {**RUN, "numbers": torch.arange(100.0), "name": "x"})
  told = []
  for content in damage(path):
    path.write_bytes(content)
    try:
      found = checkpoint.read(path)
    except CheckpointError as error:
      told.append(str(error))
    else:
      assert found["numbers"].equal(torch.arange(100.0))
      assert (found["name"], found["format"]) == ("x", 2)
  assert len(told) > 200
  assert all(str(path) in error and "\n" not in error for error in told)


@pytest.mark.parametrize("place", [".", checkpoint.NAME])
def test_the_previous_checkpoint_is_used_in_the_place_of_a_damaged_one(tmp_path, capsys, place):
  for number in range(3):
    path = checkpoint.write(tmp_path, {**RUN, "number": number})
  path.write_bytes(path.read_bytes()[:-30])
  assert [checkpoint.read(tmp_path / place)["number"] for _ in range(2)] == [1, 1]
  told = capsys.readouterr().err
  assert told.startswith(f"warning: '{path}' is not a readable checkpoint (")
  assert told.endswith(f"; the previous one, '{tmp_path / checkpoint.PREVIOUS}', is used\n")
  assert told.count("\n") == 1
  path.unlink()  # as between the renames of a write
  assert checkpoint.exists(tmp_path)
  assert checkpoint.read(tmp_path / place)["number"] == 1
  (tmp_path / checkpoint.PREVIOUS).write_bytes(b"")
  with pytest.raises(CheckpointError, match=r"checkpoint\.previous\.pt' is not a readable checkpoint"):
    checkpoint.read(tmp_path / place)


def test_a_damaged_checkpoint_does_not_displace_the_one_before(tmp_path):
  for number in range(2):
    path = checkpoint.write(tmp_path, {**RUN, "number": number})
  for damaged in (b"", path.read_bytes()[:-30], b"text"):
    path.write_bytes(damaged)
    checkpoint.write(tmp_path, {**RUN, "number": 2})
    assert checkpoint.load(tmp_path / checkpoint.PREVIOUS)["number"] == 0
    assert checkpoint.read(tmp_path)["number"] == 2


def test_a_file_that_would_run_code_is_refused(tmp_path):
  class Trap:
    def __reduce__(self):
      return (pytest.fail, ("code of the file was run",))

  torch.save({"format": 2, "config": Trap()}, tmp_path / "trap.pt")
  with pytest.raises(CheckpointError, match=r"trap\.pt' .* it holds more than numbers and strings"):
    checkpoint.read(tmp_path / "trap.pt")


def test_a_file_that_would_fill_the_memory_is_not_unpacked(tmp_path, monkeypatch):
  path = checkpoint.write(tmp_path, {**RUN, "zeros": torch.zeros(4_000_000)})
  packed = zipfile.ZipFile(tmp_path / "bomb.pt", "w", zipfile.ZIP_DEFLATED)
  with zipfile.ZipFile(path) as whole, packed as bomb:
    for name in whole.namelist():
      bomb.writestr(name, whole.read(name))
  size = (tmp_path / "bomb.pt").stat().st_size
  assert size < 100_000
  monkeypatch.setattr(zipfile.ZipFile, "open", lambda *_: pytest.fail("it was unpacked"))
  with pytest.raises(CheckpointError, match=rf"\(its {size:,} bytes unpack to 16,00\d,\d+: .* never packed"):
    checkpoint.read(tmp_path / "bomb.pt")


def test_settings_of_another_version_load_or_are_named(tmp_path):
  config = config_of(toy)
  values = to_dict(config) | {"ppo.gamma": 0.5}
  del values["ppo.clip"]
  assert checkpoint.configure("run", values, toy).ppo == dataclasses.replace(config.ppo, gamma=0.5)
  values["env.forse"] = 1.0
  with pytest.raises(CheckpointError, match=r"^'run' was written with settings .*'env.forse'; the nearest"):
    checkpoint.configure("run", values, toy)


def test_a_restarted_run_resumes_its_checkpoint_if_it_has_one(tmp_path):
  assert checkpoint.restart_arguments(None) == []
  assert checkpoint.restart_arguments(str(tmp_path)) == [f"run_dir={tmp_path}"]
  checkpoint.write(tmp_path, {})
  assert checkpoint.restart_arguments(str(tmp_path)) == [f"run_dir={tmp_path}", "resume=auto"]


def test_a_folder_of_runs_names_the_newest_of_them(tmp_path):
  checkpoint.write(tmp_path / "ant" / "first", {})
  with pytest.raises(CheckpointError, match=r"the nearest is '.*ant/first/checkpoint.pt'$"):
    checkpoint.find(tmp_path / "ant")
  (tmp_path / "hopper").mkdir()
  checkpoint.save(tmp_path / "policy.pt", {})
  with pytest.raises(CheckpointError, match=r"the nearest is '.*policy.pt'$"):
    checkpoint.find(tmp_path / "hopper")


def test_a_disk_that_fails_is_not_taken_for_a_damaged_file(tmp_path, monkeypatch):
  checkpoint.write(tmp_path, {})
  checkpoint.write(tmp_path, {})

  def fail(*_, **__):
    raise OSError(errno.EIO, "input/output error")

  monkeypatch.setattr(checkpoint.torch, "load", fail)
  with pytest.raises(OSError, match="input/output error"):
    checkpoint.read(tmp_path)


def test_ranks_that_read_other_checkpoints_do_not_go_on(monkeypatch):
  world = World()
  checkpoint._check_same("run", {"iteration": 3}, world)
  monkeypatch.setattr(world, "broadcast_object", lambda _: 4)
  with pytest.raises(CheckpointError, match="rank 0 has read iteration 3, rank 0 iteration 4"):
    checkpoint._check_same("run", {"iteration": 3}, world)


@pytest.mark.usefixtures("keep_signal_handlers")
def test_a_checkpoint_of_an_earlier_version_resumes(tmp_path):
  """`before_rooms.pt` was written before the modules moved; the words that made it are in its settings."""
  shutil.copy(Path(__file__).with_name("before_rooms.pt"), tmp_path / checkpoint.NAME)
  before = checkpoint.read(tmp_path)["learner"]
  assert train.main([f"resume={tmp_path}", "max_iterations=3"]) == 0
  after = checkpoint.read(tmp_path)["learner"]
  assert (before["iteration"], after["iteration"]) == (2, 3)
  start, end = (state["network"]["actor.layers.0.weight"] for state in (before, after))
  assert 0 < (end - start).abs().max() < 0.1  # eight steps of Adam further
