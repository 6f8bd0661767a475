"""Files of a replay buffer beside the checkpoints of a run: each save writes only its new rows."""

import re
import uuid
from collections import deque
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from gpurobot.learn.replay_buffer import Replay
from gpurobot.learn.saved_state import check_saved

FOLDER = "replay"  # in the run folder
PARTS = 64  # files of a buffer, at most
KEPT = 3  # checkpoints with kept files: the newest, the previous one, and one more, as a file may be damaged

Save = Callable[[Path, dict[str, Any]], None]
Load = Callable[[Path], dict[str, Any]]


class ReplayFiles:
  """Files of one rank's replay buffer: a part of the rows each, never changed once they are written.

  A checkpoint names the files that belong to it, so that one kept from before still has its own.
  """

  def __init__(self, folder: Path, replay: Replay, rank: int) -> None:
    """Keep the files of earlier checkpoints in the run folder for now."""
    self._folder, self._replay, self._rank = folder / FOLDER, replay, rank
    self._run = uuid.uuid4().hex[:8]  # so that no name comes again after a resume
    self._rows = -(-replay.length // PARTS)
    self._written: dict[int, str] = {}  # part -> the file with its present rows
    self._kept = deque([{path.name for path in self._present()}], maxlen=KEPT)

  def _present(self) -> list[Path]:
    return [*self._folder.glob(f"{self._rank}-*")]

  def write(self, save: Save) -> list[str]:
    """Write the parts of the ring that have changed; return the names of all its files.

    Raises OSError if the disk is full.
    """
    self._folder.mkdir(parents=True, exist_ok=True)
    for part, first in enumerate(range(0, self._replay.length, self._rows)):
      rows = slice(first, min(first + self._rows, self._replay.length))
      newest = self._replay.newest_in(rows)
      name = f"{self._rank}-{part:02d}-{newest}-{self._run}.pt"
      if newest > 0 and self._written.get(part) != name:
        save(self._folder / name, {"first": first, "rows": self._replay.memory[rows]})
        self._written[part] = name
    return [*self._written.values()]

  def forget(self, names: Sequence[str]) -> None:
    """Remove the files that belong to none of the last checkpoints; `names`: the files of the newest."""
    self._kept.append({*names})
    kept = set[str]().union(*self._kept)
    for path in self._present():
      if path.name not in kept:
        path.unlink(missing_ok=True)


def read(folder: Path, names: Sequence[str], replay: Replay, load: Load) -> None:
  """Fill the ring from the files that a checkpoint in a run folder names.

  Raises ValueError if a part does not fit or is missing, and what `load` raises.
  """
  place = int(replay.position), int(replay.filled)
  if place != (replay.written % replay.length, min(replay.written, replay.length)):
    raise ValueError(f"{replay.written} rows written do not end at row {place[0]} with {place[1]} filled")
  missing = set(range(place[1]))
  for name in names:
    if not re.fullmatch(r"[\w-]+\.pt", name):
      raise ValueError(f"{name!r} is no name of a file")
    try:
      missing.difference_update(_read_part(name, load(folder / FOLDER / name), replay))
    except (LookupError, TypeError) as error:
      raise ValueError(f"'{folder / FOLDER / name}' is no part of a replay buffer ({error!r})") from error
  if missing:
    raise ValueError(f"{len(names)} file(s) lack {len(missing)} of {place[1]} rows, first {min(missing)}")


def _read_part(name: str, content: Any, replay: Replay) -> range:
  """Fill rows of the ring from the content of a file; return their indices."""
  rows, first = content["rows"], content["first"]
  if not isinstance(first, int) or not 0 <= first < replay.length:
    raise ValueError(f"{name} says that it begins at row {first}")
  own = replay.memory[first : first + len(rows["reward"])]
  check_saved(rows, own, finite=False, name=name)
  check_saved({"reward": rows["reward"]}, {"reward": own["reward"]}, name=name)
  replay.load_rows(first, rows)
  return range(first, first + len(own))
