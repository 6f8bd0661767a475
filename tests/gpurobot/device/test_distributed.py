import contextlib
import os
import signal
import time
from datetime import timedelta

import pytest
import torch
import torch.distributed as dist

from gpurobot.device import distributed
from gpurobot.device.distributed import World
from gpurobot.settings.config import ConfigError
from tests.ranks import launch


def test_alone_every_operation_is_the_identity(monkeypatch):
  monkeypatch.delenv("WORLD_SIZE", raising=False)
  world = distributed.start()
  assert world == World()
  assert world.main
  x = torch.arange(3.0)
  assert world.sum_(x) is world.max_(x) is world.broadcast_(x) is x
  world.sum_all_([x, x])
  assert x.tolist() == [0, 1, 2]
  assert world.any_rank(True, False) == [True, False]
  assert world.broadcast_object("a") == "a"
  assert world.gather("a") == ["a"]
  assert world.collectives == 0
  world.remember("a")
  assert world.recall() is None


def test_devices(monkeypatch):
  assert World().device("cpu") == torch.device("cpu")
  monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
  assert World().device("auto") == torch.device("cpu")
  monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
  monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
  assert World(3, 4, 1, 2).device("auto") == torch.device("cuda:1")
  assert World().device("cuda:1") == torch.device("cuda:1")
  with pytest.raises(ConfigError, match=r"^device=cuda:2: this machine has 2 CUDA GPU"):
    World().device("cuda:2")
  with pytest.raises(ConfigError, match=r"^device=cuda:0 puts all 2 ranks .* on one GPU; write device=cuda$"):
    World(1, 2, 1, 2).device("cuda:0")
  assert World(1, 2, 0, 1).device("cuda:0") == torch.device("cuda:0")  # alone on its machine
  for wrong, near in (("gpu", "cpu"), ("kuda", "cuda"), ("mps", ""), ("automatic", "auto")):
    end = f"; the nearest is '{near}'$" if near else "cuda:<index>$"
    with pytest.raises(ConfigError, match=end):
      World().device(wrong)


def test_a_rank_uses_its_device_and_its_share_of_the_cores(monkeypatch):
  used = []
  monkeypatch.setattr(torch.cuda, "set_device", used.append)
  monkeypatch.setattr(torch, "set_num_threads", used.append)
  monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(8)))
  World().use(torch.device("cpu"), None)
  World(1, 4, 1, 2).use(torch.device("cuda:1"), None)
  World(1, 4, 1, 2).use(torch.device("cpu"), 3)
  assert used == [torch.device("cuda:1"), 4, 3]


def meet() -> None:
  """Try every collective on three ranks."""
  world = distributed.start()
  own = float(world.rank)
  assert world.sum_(torch.tensor([own, 1.0])).tolist() == [3, 3]
  assert world.max_(torch.tensor([own, -own])).tolist() == [2, 0]
  assert world.broadcast_(torch.tensor([own + 1])).tolist() == [1]
  pair = torch.tensor([own]), torch.tensor([[1.0, own]])
  world.sum_all_(pair)
  assert [tensor.tolist() for tensor in pair] == [[3], [[3, 3]]]
  assert world.collectives == 4
  assert world.any_rank(world.rank == 2, False) == [True, False]
  assert world.broadcast_object(f"rank {world.rank}") == "rank 0"
  assert world.gather(world.rank) == [0, 1, 2]
  assert world.collectives == 7
  assert sum(world.gather(world.first("a"))) == sum(world.gather(world.first("b"))) == 1
  world.close()


def test_ranks_compute_together(tmp_path):
  output = tmp_path / "output.txt"
  assert launch(3, output, meet) == [0, 0, 0], output.read_text()


class Clock:
  """A clock by which the grace is over when all but one rank have shown that they are left."""

  sleep = staticmethod(time.sleep)

  def __init__(self, world: World, victim: int) -> None:
    self._store = dist.PrefixStore("left", world.store)
    self._others = [str(rank) for rank in range(world.size) if rank != victim]
    self._begun = False

  def monotonic(self) -> float:
    over = self._begun and self._store.check(self._others)
    self._begun = True
    return distributed.GRACE + 1 if over else 0.0


def lose(victim: int, how: signal.Signals) -> None:
  """Stop the victim between two collectives; who is left kills it if it is still there."""
  world = distributed.start()
  distributed.time = Clock(world, victim)
  processes = world.gather(os.getpid())
  # Where a rank that is merely slow comes later, the others lose patience, and find it in the roll call.
  dist.distributed_c10d._set_pg_timeout(timedelta(seconds=2))
  if world.rank == victim:
    os.kill(os.getpid(), how)
  try:
    world.any_rank(True)
  finally:
    with contextlib.suppress(ProcessLookupError):
      os.kill(processes[victim], signal.SIGKILL)


@pytest.mark.parametrize(("victim", "how"), [(0, signal.SIGKILL), (2, signal.SIGSTOP)])
def test_a_rank_that_is_lost_is_named_once_by_the_others(tmp_path, victim, how):
  output = tmp_path / "output.txt"
  statuses = launch(4, output, lose, victim, how)
  assert statuses == [-signal.SIGKILL if rank == victim else 1 for rank in range(4)]
  errors = [line for line in output.read_text().splitlines() if line.startswith("error: ")]
  assert [line.partition(";")[0] for line in errors] == [f"error: of 4 ranks, rank {victim} died or hangs"]
  assert "Traceback" not in output.read_text()


def add_short() -> None:
  """Try a collective that fails on every rank."""
  distributed.start().sum_(torch.ones(1, dtype=torch.int16))


def test_a_failure_that_loses_no_rank_is_told_as_it_is(tmp_path):
  output = tmp_path / "output.txt"
  assert launch(2, output, add_short) == [1, 1]
  assert output.read_text().count("RuntimeError: Invalid scalar type") == 2


class Gone(torch.distributed.Store):
  def set(self, _key: str, _value: str) -> None:
    raise RuntimeError("connection lost")


def test_who_keeps_the_store_is_not_left_where_the_store_is_lost():
  assert World(1, 3, store=Gone())._roll_call() == [1, 2]


def test_a_note_outlasts_a_restart(monkeypatch, tmp_path):
  for attempt in (0, 1):
    folder = tmp_path / "launch" / f"attempt_{attempt}" / "0"
    folder.mkdir(parents=True)
    monkeypatch.setenv("TORCHELASTIC_ERROR_FILE", str(folder / "error.json"))
    assert World().recall() == (None if attempt == 0 else "runs/a")
    World().remember("runs/a")
