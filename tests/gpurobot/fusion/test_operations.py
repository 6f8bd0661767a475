"""Fused operations have the bits of torch's own, in either layout of memory, with numbers of all kinds."""

import operator
from collections.abc import Callable
from functools import partial

import pytest
import torch
from torch import Tensor

from gpurobot.device import tape
from gpurobot.device.calls import address_of, tensors_of
from gpurobot.device.tape import _Recorder
from gpurobot.fusion import schedule
from gpurobot.fusion.operations import Rows
from tests.gpurobot.fusion.fused import ROWS, bits, fuse

SPECIAL = torch.tensor(
  [0.0, -0.0, 1.0, -1.0, torch.inf, -torch.inf, torch.nan, 1e-40, 3.4e38, 0.5, -2.5, 7.0]
)
WIDTH = 9


def rows(kind: torch.dtype, seed: int, transposed: bool) -> Tensor:
  """Return numbers [ROWS, WIDTH], special ones among them, whose rows or columns lie side by side."""
  made = torch.Generator().manual_seed(seed)
  if kind.is_floating_point:
    number = torch.randn(ROWS, WIDTH, generator=made)
    chosen = torch.randint(len(SPECIAL), (ROWS, WIDTH), generator=made)
    number = torch.where(torch.rand(ROWS, WIDTH, generator=made) < 0.3, SPECIAL[chosen], number)
  else:
    top = 2 if kind is torch.bool else 2**31
    number = torch.randint(-top if kind is torch.int64 else 0, top, (ROWS, WIDTH), generator=made)
  number = number.to(kind)
  return number.T.contiguous().T if transposed else number


x, y, d, k, n, m, b = "xydknmb"  # names of the arguments
Case = Callable[..., Tensor]
# By name: the arguments, and the function. x, y: float32; d: float64; k: int64; n: int32; m, b: bool.
CASES: dict[str, tuple[str, Case]] = {
  "add": (x + y, torch.add),
  "add_number": (x, lambda x: x + 0.1),
  "add_double": (x + d, torch.add),
  "add_bool": (k + m, torch.add),
  "add_in_place": (x + y, lambda x, y: x.clone().add_(y)),
  "sub": (x + y, torch.sub),
  "rsub": (x, lambda x: 1 - x),
  "mul": (x + y, torch.mul),
  "mul_bool": (m + b, torch.mul),
  "mul_of_a_column": (x + y, lambda x, y: x * y[:, 2:3]),
  "mul_of_integers": (k, lambda k: k * -4658895280553007687),
  "div": (x + y, torch.div),
  "div_by_number": (x, lambda x: x / 3),
  "div_of_integers": (k, lambda k: k / 3),
  "pow": (x, lambda x: x**2),
  "square": (d, torch.square),
  **{
    name: (x + y, getattr(torch, name)) for name in ("lt", "le", "gt", "ge", "eq", "ne", "maximum", "minimum")
  },
  "eq_bool": (m + b, torch.eq),
  "ne_bool": (m + b, torch.ne),
  "ne_number": (x, lambda x: x != torch.inf),
  "gt_integers": (k, lambda k: k > 5),
  "lt_double": (d, lambda d: d < 0.3),
  "isfinite": (x, torch.isfinite),
  **{
    f"bitwise_{name}": (k, partial(getattr(torch, f"bitwise_{name}"), other=12345))
    for name in ("and", "or", "xor")
  },
  "bitwise_and_bool": (m + b, operator.and_),
  "bitwise_not": (m, operator.invert),
  "bitwise_not_of_integers": (k, operator.invert),
  "neg": (x, torch.neg),
  "abs": (x, torch.abs),
  "floor": (x, torch.floor),
  "shift_right": (k, lambda k: k >> 27),
  "shift_of_int32": (n, lambda n: n >> 8),
  "halves": (k, lambda k: (k * 3).clone(memory_format=torch.contiguous_format).view(torch.int32) >> 1),
  "where": (m + x + y, torch.where),
  "where_number": (m + x, lambda m, x: torch.where(m, 0.3, x)),
  "where_of_rows": (m + x + y, lambda m, x, y: torch.where(m[:, :1], x, y)),
  "masked_fill": (x + m, lambda x, m: x.masked_fill(m, -1.5)),
  "clamp": (x, lambda x: x.clamp(-0.5, 0.7)),
  "clamp_above": (x, lambda x: x.clamp(max=0.99)),
  "clamp_by_tensors": (x + y, lambda x, y: x.clamp(-y, y)),
  "nan_to_num": (x, lambda x: x.nan_to_num(1.0, 2.0, -3.0)),
  "to_float": (k, lambda k: k.to(torch.float32)),
  "int32_to_float": (n, lambda n: n.to(torch.float32)),
  "bool_to_float": (m, lambda m: m.to(torch.float32)),
  "to_double": (x, lambda x: x.to(torch.float64)),
  "to_single": (d, lambda d: d.to(torch.float32)),
  "cat": (x + y, lambda x, y: torch.cat([x[:, :2], y, x[:, 5:]], 1)),
  "stack": (x + y, lambda x, y: torch.stack([x, y], 1)),
  "ones_like": (x + y, lambda x, y: torch.ones_like(x).add_(y)),
  "empty_like": (x, lambda x: torch.empty_like(x).copy_(x)),
  "sum": (x, lambda x: x[:, :8].sum(1)),
  "sum_kept": (x, lambda x: x.sum(-1, keepdim=True)),
  **{f"sum_of_{n}": (x, partial(lambda n, x: torch.cat([x.T] * 64)[:n].T.sum(1), n)) for n in (16, 60, 255)},
  "sum_of_bool": (m, lambda m: m.sum(1)),
  "quaternion": (x, lambda x: torch.stack([x[:, 0] * x[:, 1] - x[:, 2] * x[:, 3], x[:, 1] + x[:, 2]], 1)),
}
KINDS = {x: torch.float32, y: torch.float32, d: torch.float64, k: torch.int64, n: torch.int32}
KINDS |= {m: torch.bool, b: torch.bool}


@pytest.fixture(scope="module", params=[False, True], ids=["rows", "columns"])
def results(request: pytest.FixtureRequest) -> tuple[list[str], dict[str, tuple[Tensor, Tensor]]]:
  """The operations that no function took over; by case, its result fused and by torch."""
  given = {name: rows(kind, seed, request.param) for seed, (name, kind) in enumerate(KINDS.items())}
  expected = {name: case(*(given[own] for own in args)) for name, (args, case) in CASES.items()}
  found = {name: torch.zeros_like(own) for name, own in expected.items()}

  def piece() -> None:
    for name, (args, case) in CASES.items():
      found[name].copy_(case(*(given[own] for own in args)))

  with pytest.MonkeyPatch.context() as patch:
    patch.setattr(schedule, "LEAST", 1)
    patch.setattr(tape, "_same", lambda *_: True)  # the cases compare
    left = fuse(patch, piece)
  return left, {name: (found[name], own) for name, own in expected.items()}


@pytest.mark.parametrize("name", CASES)
def test_fused_operations_have_torchs_bits(results, name):
  found, expected = results[1][name]
  assert found.stride() == expected.stride()
  if expected.is_floating_point():
    assert torch.equal(found.isnan(), expected.isnan())
    found, expected = (
      found.nan_to_num(0, torch.inf, -torch.inf),
      expected.nan_to_num(0, torch.inf, -torch.inf),
    )  # a nan may be any of many
  assert torch.equal(bits(found), bits(expected))


def test_functions_take_over_all_operations(results):
  assert set(results[0]) <= {"run", "sum"}


def is_fit(operation: Callable[[Tensor], Tensor], x: Tensor) -> bool:
  """Return whether the last operation of a function fits into a program of as many rows as x has."""
  with _Recorder() as recorder:
    operation(x)
  call = recorder.calls[-1]
  rows = Rows(len(x), {address_of(own): own for own in tensors_of([call.args, call.result])}, {})
  return rows.add(call) and rows.fits()


@pytest.mark.parametrize(
  "operation",
  [
    torch.sqrt,  # of a library
    torch.exp,
    lambda x: x.pow(3),
    lambda x: x.add(x, alpha=0.3),  # which rounds once
    lambda x: x.sum(0),  # over the rows
    torch.sum,
    lambda x: x.contiguous().sum(1),  # in another order
    lambda x: torch.cat([x.T] * 32)[:256].T.sum(1),  # of more than two levels
    lambda x: x.to(torch.float16),
    lambda x: x.to(torch.bfloat16),
    lambda x: x.cumsum(1),
    lambda x: x @ x.T,
    lambda x: torch.cat([x[:32], x[32:]]),
    torch.nan_to_num,
    lambda x: x[:, :1].expand(ROWS, ROWS).neg(),  # two dimensions as long
    lambda x: x[0].neg(),  # no rows
    lambda x: x[:, :1].expand(ROWS, 2000).neg(),  # as wide as an image
    lambda _: torch.zeros(ROWS + 1).as_strided((ROWS, 2), (1, 1)).neg_(),  # rows that overlap
  ],
)
def test_other_operations_do_not_fit(operation):
  assert not is_fit(operation, rows(torch.float32, 0, transposed=True))


def test_a_sum_fits_where_torch_adds_up_all_rows_alike():
  assert is_fit(lambda x: x.sum(1), torch.zeros(4, 64).T)
  assert not is_fit(lambda x: x.sum(1), torch.zeros(4, 80).T)
