import pytest
import torch

from benchmarks import cores, report


def test_an_operation_moves_what_it_reads_and_writes():
  table, rows = torch.zeros(1000, 10), torch.arange(5)
  with cores.Traffic(cache=0) as traffic:
    table.mul_(2)
    assert traffic.moved == 2 * table.nbytes
    view = table.view(10, -1)[2:5]
    assert traffic.moved == 2 * table.nbytes
    view + 1
    assert traffic.moved == 2 * table.nbytes + 2 * view.nbytes
    table.index_select(0, rows)
    assert traffic.moved == 2 * (table.nbytes + view.nbytes + 5 * 10 * 4)


def test_small_tensors_stay_in_the_cache():
  with cores.Traffic(cache=100) as traffic:
    torch.zeros(25) + 1
    assert traffic.moved == 0
    torch.zeros(26)
    assert traffic.moved == 104


def test_a_sum_over_a_ring_passes_every_share_twice():
  ring = cores.Reduction(latency=1e-5, rate=1e9)
  assert ring.seconds(1, 8e6) == 0
  assert ring.seconds(2, 8e6) == pytest.approx(2 * (1e-5 + 4e-3))
  assert ring.seconds(4, 8e6) == pytest.approx(6 * (1e-5 + 2e-3))


def test_speed_grows_with_the_cores_until_the_memory_is_busy():
  rank = {"steps": 1000, "seconds": 0.1, "bytes": 1e9, "gradient": 0, "sums": 8}
  free = cores.Reduction(latency=0, rate=1)
  cores.predict(10, 200e9, rank, free)
  assert report.printed["cores.10.steps_per_second"] == pytest.approx(10 * 1000 / 0.1)
  assert report.printed["cores.10.bandwidth_needed"] == pytest.approx(0.5)
  cores.predict(40, 200e9, rank, free)
  assert report.printed["cores.40.steps_per_second"] == pytest.approx(200 * 1000)
  cores.predict(10, 200e9, rank, cores.Reduction(latency=1e-3, rate=1e9))
  assert report.printed["cores.10.reduction_share"] == pytest.approx(0.144 / 0.244)
