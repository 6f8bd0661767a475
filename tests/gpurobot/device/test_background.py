import threading

import pytest
import torch

from gpurobot.device.background import Background

CPU = torch.device("cpu")


@pytest.mark.parametrize("concurrent", [True, False])
def test_both_have_ended_when_the_block_is_left(concurrent):
  background, done, entered = Background(CPU, 1), list[str](), threading.Event()

  def work() -> None:
    if concurrent:
      entered.wait()  # it ends only if the block runs meanwhile
    done.append("work")

  with background.running(work, concurrent):
    assert (done == ["work"]) == (not concurrent)
    entered.set()
  assert done == ["work"]


def test_it_has_threads_of_its_own():
  before, seen = torch.get_num_threads(), list[int]()
  with Background(CPU, 7).running(lambda: seen.append(torch.get_num_threads())):
    pass
  assert (seen, torch.get_num_threads()) == ([7], before)


def test_an_error_there_is_an_error_here():
  def fail() -> None:
    raise ValueError("the robot broke")

  background = Background(CPU, 1)
  with pytest.raises(ValueError, match="the robot broke"), background.running(fail):
    pass
  with background.running(lambda: None):  # it goes on
    pass


def test_an_error_here_waits_for_what_runs_there():
  go, ended = threading.Event(), list[bool]()

  def work() -> None:
    go.wait()
    ended.append(True)

  def break_off() -> None:
    go.set()
    raise KeyError("here")

  with pytest.raises(KeyError), Background(CPU, 1).running(work):
    break_off()
  assert ended == [True]
