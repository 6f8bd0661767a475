"""Threads for a stretch of work, on a process that has two."""

import pytest
import torch

from gpurobot.device import threads


@pytest.fixture(autouse=True)
def two_threads():
  before = torch.get_num_threads()
  torch.set_num_threads(2)
  yield
  torch.set_num_threads(before)


@pytest.mark.parametrize(("num_envs", "count"), [(1, 1), (4096, 1), (16383, 1), (16384, 2), (10**6, 2)])
def test_few_environments_have_one_thread_and_many_no_more_than_there_are(num_envs, count):
  assert threads.enough(num_envs) == count


def test_the_number_holds_within_the_block_even_if_it_fails():
  with threads.use(1):
    assert torch.get_num_threads() == 1
    with threads.use(2):
      assert torch.get_num_threads() == 2
    assert torch.get_num_threads() == 1
  with pytest.raises(RuntimeError), threads.use(1):
    raise RuntimeError
  assert torch.get_num_threads() == 2
