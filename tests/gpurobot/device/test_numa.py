import os

import pytest
import torch

from gpurobot.device import numa
from gpurobot.device.distributed import World


@pytest.fixture
def machine(monkeypatch, tmp_path):
  """Return what is bound on a machine of three nodes, one of them without cores, that lends us eleven."""
  bound = []
  for node, cores in {0: "0-3,8-11\n", 1: "\n", 10: "4-7,12-15\n"}.items():
    (tmp_path / f"node{node}").mkdir()
    (tmp_path / f"node{node}" / "cpulist").write_text(cores)
  monkeypatch.setattr(numa, "NODES", tmp_path)
  monkeypatch.setattr(os, "sched_getaffinity", lambda _pid: set(range(11)), raising=False)
  monkeypatch.setattr(os, "sched_setaffinity", lambda _pid, cores: bound.append(cores), raising=False)
  return bound


def test_a_node_has_the_usable_ones_of_its_cores(machine):
  assert numa.cores_by_node() == [{0, 1, 2, 3, 8, 9, 10}, {4, 5, 6, 7}]


def test_neighbouring_ranks_share_a_node(machine, monkeypatch):
  threads = []
  monkeypatch.setattr(torch, "set_num_threads", threads.append)
  for rank in range(4):
    World(rank, 4, rank, 4).use(torch.device("cpu"), None)
  assert machine == [{0, 1, 2, 3, 8, 9, 10}] * 2 + [{4, 5, 6, 7}] * 2
  assert threads == [11 // 4] * 4
  monkeypatch.setattr(torch.cuda, "set_device", lambda _device: None)
  World(0, 2, 0, 2).use(torch.device("cuda:0"), None)  # a GPU takes its ranks where torchrun put them
  assert len(machine) == 4


def test_ranks_that_nodes_cannot_share_may_use_all_cores(machine, recwarn):
  for rank, ranks in ((0, 1), (1, 3)):
    numa.bind(rank, ranks)
  assert not machine
  assert not recwarn
  with pytest.warns(UserWarning, match="2 NUMA nodes cannot share 3 ranks evenly.*: start a multiple of 2"):
    numa.bind(0, 3)
  assert not machine


def test_one_node_and_a_system_that_does_not_say_bind_nothing(machine, monkeypatch, tmp_path):
  monkeypatch.setattr(os, "sched_getaffinity", lambda _pid: {4, 5})
  numa.bind(0, 2)
  monkeypatch.setattr(numa, "NODES", tmp_path / "missing")
  assert numa.cores_by_node() == []
  numa.bind(0, 2)
  assert not machine
