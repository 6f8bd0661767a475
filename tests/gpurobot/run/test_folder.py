import os
import re
from pathlib import Path

import pytest

from gpurobot.device.distributed import World
from gpurobot.run import checkpoint, folder
from gpurobot.settings.config import ConfigError, TrainConfig


def claim(place, **settings):
  return folder.claim(TrainConfig(run_dir=str(place), **settings), World())


def test_a_folder_is_one_training_s_at_a_time(tmp_path):
  place, lock = claim(tmp_path / "a" / "b")
  assert place.is_dir()
  message = (
    rf"^another training \(process {os.getpid()} on .*\) is running in '{re.escape(str(place))}'; wait"
  )
  with pytest.raises(ConfigError, match=message):
    claim(place)
  lock.close()
  claim(place)[1].close()


def test_a_relative_folder_stays_where_the_run_began(tmp_path, monkeypatch):
  monkeypatch.chdir(tmp_path)
  place, lock = claim("a")
  lock.close()
  assert (place, folder.shown(place)) == (tmp_path / "a", Path("a"))
  monkeypatch.chdir("/")
  assert folder.shown(place / "b") == tmp_path.relative_to("/") / "a" / "b"


def test_the_system_takes_the_lock_from_one_that_was_killed(tmp_path):
  child = os.fork()
  if child == 0:
    claim(tmp_path)
    os.kill(os.getpid(), 9)
  os.waitpid(child, 0)
  assert (tmp_path / folder.LOCK).read_text().startswith(f"process {child} on ")
  claim(tmp_path)[1].close()


def test_a_training_writes_over_no_other_s_checkpoint(tmp_path):
  checkpoint.write(tmp_path, {})
  with pytest.raises(ConfigError, match="holds the checkpoint of another training; write resume=") as kept:
    claim(tmp_path)
  checkpoint.write(tmp_path / "other", {})
  with pytest.raises(ConfigError, match="holds the checkpoint of another training"):
    claim(tmp_path, resume=str(tmp_path / "other"))
  claim(tmp_path, resume=str(tmp_path))[1].close()
  claim(tmp_path, resume=str(tmp_path / checkpoint.NAME))[1].close()
  assert kept.value.__traceback__  # a refusal keeps no lock while its error is remembered


def test_a_file_system_without_locks_is_told_of(tmp_path, monkeypatch):
  def refuse(*_):
    raise OSError(38, "Function not implemented")

  monkeypatch.setattr(folder.fcntl, "flock", refuse)
  with pytest.warns(UserWarning, match=r"cannot be locked \(Function not implemented\)"):
    claim(tmp_path)[1].close()


def test_of_several_runs_the_newest_is_the_one_that_saved_last(tmp_path):
  runs = [tmp_path / "ant" / name for name in ("a", "b", "c")]
  for age, run in enumerate(runs):
    os.utime(checkpoint.write(run, {}), (0, 1000 - age))
  os.utime((runs[1] / checkpoint.NAME).replace(runs[1] / checkpoint.PREVIOUS), (0, 2000))
  assert folder.newest_run(str(tmp_path)) == folder.newest_run(str(tmp_path / "ant")) == str(runs[1])
  for place in (runs[0], runs[0] / checkpoint.NAME, runs[1] / checkpoint.PREVIOUS, tmp_path / "nothing"):
    assert folder.newest_run(str(place)) == str(place)


def test_a_run_without_a_folder_gets_one_of_its_own(tmp_path, monkeypatch):
  monkeypatch.chdir(tmp_path)
  place, lock = folder.claim(TrainConfig(task="some/where/ant.py", seed=3), World())
  lock.close()
  assert re.fullmatch(r"runs/ant/\d{8}-\d{6}-3", str(folder.shown(place)))
  assert Path(place).is_dir()
