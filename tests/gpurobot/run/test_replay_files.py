from pathlib import Path

import pytest
import torch

from gpurobot.learn.random import Random
from gpurobot.learn.replay_buffer import Replay
from gpurobot.run import checkpoint, replay_files
from gpurobot.run.replay_files import ReplayFiles
from tests.gpurobot.toy import Config, Task

LENGTH = 128  # two rows in each of 64 parts


def make(num_envs: int = 3, length: int = LENGTH) -> Replay:
  env = Task(Config(), num_envs, random=Random(0, num_envs))
  return Replay(env, 1, length, (torch.float32, torch.float32))


def go_on(replay: Replay, count: int) -> None:
  """Write rows whose rewards count them."""
  for _ in range(count):
    for sample in replay.steps:
      sample["reward"].fill_(replay.written + 1)
    replay.written += 1


def write(files: ReplayFiles) -> tuple[list[str], list[str]]:
  """Write what is new; return the names of all files, and of the new ones."""
  new: list[str] = []
  names = files.write(lambda path, content: (new.append(path.name), checkpoint.save(path, content))[0])
  return names, new


def load(folder, names: list[str], replay: Replay | None = None) -> Replay:
  replay = replay or make()
  replay_files.read(folder, names, replay, checkpoint._unpack)
  return replay


def test_a_save_writes_what_is_new_and_all_is_read_back(tmp_path):
  replay = make()
  files = ReplayFiles(tmp_path, replay, rank=0)
  counts, steps = [], (0, 3, 0, 1, 60, 63, 1, 2, 200)
  for count in steps:
    go_on(replay, count)
    names, new = write(files)
    counts.append(len(new))
    assert torch.equal(load(tmp_path, names).memory["reward"], replay.memory["reward"])
  assert counts == [0, 2, 0, 1, 30, 32, 1, 1, 64]


def test_an_earlier_checkpoint_keeps_its_files(tmp_path):
  replay = make()
  files = ReplayFiles(tmp_path, replay, rank=0)
  names, rewards = [], []
  for _ in range(6):
    go_on(replay, 10)
    names.append(write(files)[0])
    rewards.append(replay.memory["reward"].clone())
    files.forget(names[-1])
  for index in (-1, -2, -3):
    assert torch.equal(load(tmp_path, names[index]).memory["reward"], rewards[index])
  present = {path.name for path in (tmp_path / replay_files.FOLDER).iterdir()}
  assert present == {name for some in names[-3:] for name in some}


def test_a_resumed_run_touches_no_file_of_the_checkpoint_before(tmp_path):
  replay = make()
  go_on(replay, 9)
  names, _ = write(ReplayFiles(tmp_path, replay, rank=0))
  before = replay.memory["reward"].clone()
  resumed = ReplayFiles(tmp_path, replay, rank=0)
  for _ in range(2):
    go_on(replay, 1)
    resumed.forget(write(resumed)[0])
    assert torch.equal(load(tmp_path, names).memory["reward"], before)
  resumed.forget(write(resumed)[0])
  with pytest.raises(FileNotFoundError):
    load(tmp_path, names)


def test_ranks_share_a_folder(tmp_path):
  replays = [make(), make()]
  names = []
  for rank, replay in enumerate(replays):
    go_on(replay, 5 + rank)
    files = ReplayFiles(tmp_path, replay, rank)
    names.append(write(files)[0])
    files.forget(names[-1])
  for replay, own in zip(replays, names, strict=True):
    assert torch.equal(load(tmp_path, own).memory["reward"], replay.memory["reward"])


def test_what_does_not_fit_is_named(tmp_path):
  replay = make()
  go_on(replay, 1)
  names, _ = write(ReplayFiles(tmp_path, replay, rank=0))
  with pytest.raises(ValueError, match=rf"^{names[0]}.* has shape \[2, 3.*\], not \[2, 4"):
    load(tmp_path, names, make(num_envs=4))
  with pytest.raises(ValueError, match=r"^'../checkpoint.pt' is no name of a file$"):
    load(tmp_path, ["../checkpoint.pt"])


def change(path: Path, **content: object) -> None:
  checkpoint.save(path, checkpoint._unpack(path) | content)


@pytest.mark.parametrize(
  ("damage", "message"),
  [
    (lambda names, _: names[32:], r"32 file\(s\) lack 64 of 128 rows, first 0"),
    (lambda names, folder: change(folder / names[1], first=0), r"64 file\(s\) lack 2 of 128 rows, first 2"),
    (lambda names, folder: change(folder / names[1], first=-2), r".* says that it begins at row -2"),
    (lambda names, folder: change(folder / names[1], first=1.0), r".* says that it begins at row 1\.0"),
    (lambda names, folder: change(folder / names[1], rows=3), ".*/0-01-4-.*pt' is no part of a rep"),
    (lambda names, folder: change(folder / names[1], rows={}), ".*/0-01-4-.*pt' is no part of a rep"),
    (lambda names, folder: list_in(folder / names[1]), ".*/0-01-4-.*pt' is no part of a rep"),
    (lambda _, folder: folder.joinpath("position"), "130 rows written do not end at row 5 with 128 filled"),
    (lambda names, folder: change(folder / names[1], rows=infinite(folder / names[1])), ".*reward is not f"),
  ],
)  # fmt: skip
def test_what_is_missing_or_wrong_is_told(tmp_path, damage, message):
  replay, other = make(), make()
  go_on(replay, LENGTH + 2)
  names, _ = write(ReplayFiles(tmp_path, replay, rank=0))
  other.load_state_dict(replay.state_dict())
  assert torch.equal(load(tmp_path, names, other).memory["reward"], replay.memory["reward"])
  found = damage(names, tmp_path / replay_files.FOLDER)
  if isinstance(found, Path):
    other.position.fill_(5)
  with pytest.raises(ValueError, match=f"^{message}"):
    load(tmp_path, found if isinstance(found, list) else names, other)


def list_in(path: Path) -> None:
  torch.save([1], path)


def infinite(path: Path) -> dict:
  rows = checkpoint._unpack(path)["rows"]
  return rows | {"reward": torch.full_like(rows["reward"], torch.inf)}


def test_a_full_disk_is_told(tmp_path):
  (tmp_path / replay_files.FOLDER).write_text("in the way")
  with pytest.raises(OSError, match="exists"):
    ReplayFiles(tmp_path, make(), rank=0).write(checkpoint.save)
