import random
import warnings
from types import SimpleNamespace
from typing import ClassVar

import pytest
import torch
from torch import nn

from gpurobot.device.graph import WARM_UPS
from gpurobot.device.tape import Tape, repeated


def learner(seed: int = 0) -> tuple[Tape, list[torch.Tensor], list[str]]:
  """Return a gradient step on static memory, that memory, and what Python has done."""
  torch.manual_seed(seed)
  network = nn.Sequential(nn.Linear(3, 4), nn.LayerNorm(4), nn.SiLU(), nn.Linear(4, 2))
  x, loss, step, done = torch.randn(8, 3), torch.zeros(()), torch.zeros(2, dtype=torch.int64), list[str]()
  for weight in network.parameters():
    weight.grad = torch.zeros_like(weight)

  def piece() -> None:
    done.append("called")
    unused = x.exp()
    found = (network(x).tanh() - step[0]).square().mean() + 0 * unused.detach()[0, 0]
    for weight in network.parameters():
      weight.grad.zero_()
    found.backward()
    with torch.no_grad():
      for weight in network.parameters():
        weight.sub_(weight.grad, alpha=0.1)
      loss.copy_(found)
      step[:1] += 1
      torch.where(loss > 0, x * 0.9, x, out=x)

  memory = [x, loss, step, *network.parameters(), *(weight.grad for weight in network.parameters())]
  return Tape(piece), memory, done


def test_a_replay_has_the_bits_of_the_function_on_memory_that_may_change():
  (tape, memory, done), (other, expected, _) = learner(), learner()
  for _ in range(WARM_UPS + 5):
    tape()
    other.function()
    torch.testing.assert_close(memory, expected, rtol=0, atol=0)
  assert len(done) == WARM_UPS + 2
  for own in (memory, expected):
    own[0].fill_(0.5)
    own[3].data.mul_(2)
  tape(), other.function()
  torch.testing.assert_close(memory, expected, rtol=0, atol=0)


def test_what_nothing_uses_is_not_replayed():
  x, y = torch.ones(3), torch.zeros(3)

  def piece() -> None:
    x.exp().sin()
    y.unsqueeze(0)[0].add_(x.mul(2).detach())

  tape = Tape(piece)
  for _ in range(WARM_UPS + 2):
    tape()
  assert y.tolist() == [2 * (WARM_UPS + 2)] * 3
  lines = tape.source.splitlines()
  assert len(lines) == 5  # def, x * 2, y += of it, del, return
  assert all("exp" not in line for line in lines)


def test_a_replay_takes_the_arguments_of_its_call():
  rows, total = torch.arange(24.0).view(8, 3), torch.zeros(2)

  def piece(row: dict[str, torch.Tensor], factor: float) -> None:
    first = row["x"][:2].unsqueeze(0)
    total.add_(first[0])
    row["x"].mul_(factor)
    row["y"].copy_(row["x"].sum())

  sums, tape = torch.zeros(8), Tape(piece)
  for x, y in zip(rows.unbind(), sums.unbind(), strict=True):
    tape({"x": x, "y": y}, 2.0)
  assert total.tolist() == [84.0, 92.0]
  assert torch.equal(rows, torch.arange(24.0).view(8, 3) * 2)
  assert torch.equal(sums, rows.sum(1))
  assert tape.source.startswith("def replay(a0, a1):")


def test_a_repeated_function_is_called_in_its_place():
  x, seen = torch.zeros(()), list[float]()

  @repeated
  def look(factor: float, *, more: float) -> None:
    seen.append(factor * float(x) + more)

  def piece() -> None:
    x.add_(1)
    look(10.0, more=0.5)
    x.add_(1)

  tape = Tape(piece)
  for _ in range(WARM_UPS + 2):
    tape()
  seen.clear()
  tape(), tape()
  assert seen == [10.0 * (2 * WARM_UPS + 5) + 0.5, 10.0 * (2 * WARM_UPS + 7) + 0.5]
  assert x == 2 * WARM_UPS + 8


def counting(x: torch.Tensor):
  """Return a function that depends on a number of Python's."""
  count = 0

  def count_up() -> None:
    nonlocal count
    count += 1
    x.add_(count)

  return count_up


def branching(x: torch.Tensor):
  """Return a function that reads a number from a tensor."""

  def grow() -> None:
    if x < 5:
      x.add_(1)
    else:
      x.add_(2)

  return grow


def masking(x: torch.Tensor):
  """Return a function in which a shape depends on numbers."""

  def pick() -> None:
    x.add_(x.expand(3)[torch.ones(3, dtype=torch.bool)].sum() * 0 + 1)

  return pick


def drawing(x: torch.Tensor):
  """Return a function that draws a number of Python's."""

  def draw() -> None:
    x.add_(1.0 + 0.0 * random.random())

  return draw


@pytest.mark.parametrize(
  ("make", "reason"),
  [
    (drawing, "'draw' is not replayed: random draws a number; draw it with self.random, or"),
    (counting, "'count_up' is not replayed: repeated operations give other numbers"),
    (branching, "'grow' is not replayed: aten._local_scalar_dense.default reads a number from a tensor"),
    (masking, "'pick' is not replayed: aten.index.Tensor reads a number from a tensor"),
  ],
)
def test_what_a_replay_would_get_wrong_is_told_and_called(make, reason):
  x, expected = torch.zeros(()), torch.zeros(())
  tape, function = Tape(make(x)), make(expected)
  found = []
  for _ in range(WARM_UPS + 5):
    with warnings.catch_warnings(record=True) as told:
      tape()
    function()
    found += [str(warning.message) for warning in told]
    assert x == expected
  assert [reason in message for message in found] == [True]


def test_what_python_counts_for_later_is_told_and_called():
  """The comparison alone would not see it."""

  class Watched:
    calls = 0
    memory: ClassVar = {"x": torch.zeros(())}

    def step(self) -> None:
      self.calls += 1
      self.memory["x"] += self.calls > WARM_UPS + 4

  watched = Watched()
  tape = Tape(watched.step, {"env": watched})
  with pytest.warns(UserWarning, match="'step' is not replayed: env.calls changes from call to call"):
    [tape() for _ in range(WARM_UPS + 2)]
  for _ in range(4):
    tape()
  assert watched.memory["x"] == 2


def test_a_later_replay_is_compared_too():
  """What nobody watches changes after the first comparison; the bits are those of calls before and after."""
  other = [1.0]
  x, expected = torch.zeros(()), 0.0
  tape = Tape(lambda: x.add_(other[0]))
  for call in range(1, 1004):
    if call == 1001:
      other[0] = 2.0
      with pytest.warns(UserWarning, match="'<lambda>' is not replayed: repeated operations give other"):
        tape()
    else:
      tape()
    expected += other[0]
    assert x == expected


def test_what_a_caller_sets_is_recorded_again(recwarn):
  watched = SimpleNamespace(gain=1.0)
  x = torch.zeros(())
  tape = Tape(lambda: x.add_(watched.gain), {"env": watched})
  for gain in (1.0, 10.0, 100.0):
    watched.gain = gain
    tape.refresh()
    for _ in range(WARM_UPS + 4):
      tape()
      tape.refresh()
    assert tape.source
  assert x == 111 * (WARM_UPS + 4)
  assert not recwarn


def test_a_comparison_sees_what_is_not_a_number():
  x = torch.full((2,), torch.nan)
  tape = Tape(lambda: x.add_(1))  # no warning
  for _ in range(WARM_UPS + 3):
    tape()
  assert tape.source
