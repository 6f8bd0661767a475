"""Functions take the place of operations, in an order that changes nothing."""

import re

import pytest
import torch

from gpurobot.device import tape
from gpurobot.device.graph import WARM_UPS
from gpurobot.device.tape import Tape, repeated
from physics.trace import exact
from tests.gpurobot.fusion.fused import ROWS, Fusion, bits, fuse


def memory(*widths: int) -> list[torch.Tensor]:
  """Return numbers [ROWS, width] for each width, whose columns lie side by side."""
  made = torch.Generator().manual_seed(0)
  return [torch.randn(width, ROWS, generator=made).T for width in widths]


def test_what_is_no_operation_of_rows_stays(monkeypatch):
  x, y, total = *memory(3, 3), torch.zeros(())

  def piece() -> None:
    z = (x * 0.5 + 1).abs() - y
    total.copy_(z.sum())
    y.copy_((z.exp() * 0.1 - x).clamp(-1, 1) + total)

  expected = [own.clone() for own in (x, y, total)]
  assert fuse(monkeypatch, piece) == ["run", "sum", "copy_", "exp", "run"]
  x_, y_, total_ = expected
  for _ in range(WARM_UPS + 6):
    z = (x_ * 0.5 + 1).abs() - y_
    total_.copy_(z.sum())
    y_.copy_((z.exp() * 0.1 - x_).clamp(-1, 1) + total_)
  assert all(map(torch.equal, map(bits, (x, y, total)), map(bits, (x_, y_, total_))))


def test_what_is_no_operation_of_torch_keeps_its_place(monkeypatch):
  """A flag that is set for a launch, and reset after it, reaches the launch."""
  flag, x, seen = torch.zeros(ROWS), *memory(2), []

  @repeated
  def launch() -> None:
    seen.append(flag.sum().item())

  def piece() -> None:
    x.mul_(0.5).add_(0.1).clamp_(-1, 1)
    flag.zero_()
    flag.copy_(x[:, 0] < 10)
    launch()
    flag.fill_(0.0)
    x.mul_(2).sub_(0.1).clamp_(-1, 1)

  assert fuse(monkeypatch, piece) == ["run", "launch", "run"]
  assert set(seen) == {ROWS}


def test_memory_that_a_function_writes_may_be_read_by_torch(monkeypatch):
  x, found = memory(4), torch.zeros(ROWS, 4)

  def piece() -> None:
    halves = (x[0] * 0.5).neg() + 1
    found.copy_(halves.T.flip(0).T @ torch.eye(4))
    x[0].copy_(halves - found)

  expected = x[0].clone()
  assert "run" in fuse(monkeypatch, piece)
  for _ in range(WARM_UPS + 6):
    halves = (expected * 0.5).neg() + 1
    expected = halves - halves.T.flip(0).T
  torch.testing.assert_close(x[0], expected, rtol=0, atol=0)


@pytest.mark.parametrize("transposed", [False, True])
def test_what_changes_few_rows_is_stored_in_these(monkeypatch, transposed):
  def numbers(seed: int, *shape: int) -> torch.Tensor:
    found = torch.randn(*shape, generator=torch.Generator().manual_seed(seed))
    return found.T.contiguous().T if transposed else found

  def piece(x, kept, count, flag) -> None:
    ended = x[:, 0] > threshold
    kept.copy_(torch.where(ended[:, None], x * 2 + 1, kept))
    torch.where(ended, kept[:, 0] + 1, count, out=count)
    flag.copy_(torch.where(ended, flag, x[:, 1] > 0))
    x.masked_fill_(ended[:, None], 0.5).mul_(1.01)
    kept.masked_fill_(~ended[:, None] & (kept > 1), 0.25)

  def memory() -> list[torch.Tensor]:
    x = numbers(0, ROWS, 3)
    x[:16, 0], x[16:32, 0] = 9, -9  # a block of which all rows change, and one of which none does
    return [x, numbers(1, ROWS, 3), torch.zeros(ROWS), torch.zeros(ROWS, dtype=torch.bool)]

  threshold, found, expected = torch.tensor(1.5), memory(), memory()
  assert fuse(monkeypatch, piece, *found) == ["run"]
  for _ in range(WARM_UPS + 6):
    piece(*expected)
  assert all(map(torch.equal, map(bits, found), map(bits, expected)))


def test_arguments_may_lie_elsewhere_in_each_call(monkeypatch):
  monkeypatch.setattr(tape, "FUSE", WARM_UPS + 3)
  (x,) = memory(3)
  samples = torch.zeros(WARM_UPS + 8, ROWS, 3)
  fused = Tape(lambda sample: sample.copy_((x * 2 + 1).abs() - 0.5))
  fused.fusion = Fusion()
  for sample in samples:
    fused(sample)
    x.mul_(1.1)
  assert fused.fused
  (x,) = memory(3)
  for sample in samples:
    torch.testing.assert_close(sample, (x * 2 + 1).abs() - 0.5, rtol=0, atol=0)
    x.mul_(1.1)


def test_arguments_that_share_memory_are_left_to_torch(monkeypatch):
  pair = torch.randn(2, ROWS, 3)

  def piece(one: torch.Tensor, other: torch.Tensor) -> None:
    one.mul_(0.5).add_(other).clamp_(0, 1)

  assert fuse(monkeypatch, piece, *pair.unbind(0)) == ["function"]


def test_memory_with_two_addresses_is_left_to_torch(monkeypatch):
  whole = torch.zeros(2 * ROWS)
  part = torch.from_numpy(whole.numpy()[ROWS:])

  def piece() -> None:
    whole[:ROWS].add_(1).mul_(0.5).neg_()
    part.add_(1).mul_(0.5).neg_()

  assert fuse(monkeypatch, piece) == ["function"]


def test_few_operations_are_left_to_torch(monkeypatch):
  (x,) = memory(3)
  assert fuse(monkeypatch, lambda: x.mul_(0.5).neg_()) == ["function"]
  assert fuse(monkeypatch, lambda: x.mul_(0.5).neg_().add_(1)) == ["run"]


@pytest.mark.filterwarnings("ignore:'piece' is not fused")
def test_functions_with_other_numbers_are_left_out_again(monkeypatch, recwarn):
  source = exact.exact_source
  wrong = lambda *words: re.sub(r"(= t\d+) \* ", r"\1 + ", source(*words))  # noqa: E731
  monkeypatch.setattr(exact, "exact_source", wrong)
  (x,) = memory(3)

  def piece() -> None:
    x.mul_(0.5).neg_().add_(1)

  expected = x.clone()
  assert fuse(monkeypatch, piece) == ["function"]
  for _ in range(WARM_UPS + 6):
    expected.mul_(0.5).neg_().add_(1)
  assert torch.equal(x, expected)
  assert "'piece' is not fused: it has other numbers; write compile=off" in [str(w.message) for w in recwarn]


def test_functions_follow_an_attribute_that_changes(monkeypatch):
  monkeypatch.setattr(tape, "FUSE", WARM_UPS + 3)

  class Scaled:
    factor = 0.5

    def piece(self) -> None:
      x.mul_(self.factor).neg_().add_(1)

  (x,), scaled = memory(3), Scaled()
  expected = x.clone()
  fused = Tape(scaled.piece, {"scaled": scaled})
  fused.fusion = Fusion()
  for call in range(WARM_UPS + 12):
    scaled.factor = 0.5 if call < WARM_UPS + 7 else 0.25
    fused.refresh()
    fused()
    expected.mul_(scaled.factor).neg_().add_(1)
  assert fused.fused
  assert torch.equal(x, expected)
