import functools

import pytest
import torch

from gpurobot.device.compiler import Compiler
from gpurobot.settings.config import ConfigError, Switch

CPU, CUDA = torch.device("cpu"), torch.device("cuda")


@pytest.fixture
def compiled(monkeypatch):
  """The functions given to the compiler, which hands them back."""
  given = []
  monkeypatch.setattr(torch, "compile", lambda function, **_: given.append(function) or function)
  return given


@pytest.fixture
def broken(monkeypatch):
  """A machine without a compiler."""

  def fail(*_, **__):
    raise RuntimeError("no C++ compiler found\nat great length")

  monkeypatch.setattr(torch, "compile", lambda *_, **__: fail)


def test_it_is_used_where_it_is_asked_for(compiled):
  def double(x):
    return 2 * x

  for switch in (Switch.auto, Switch.off):
    assert Compiler(switch, CPU)(double) is double
  assert compiled == []
  assert Compiler(Switch.on, CPU)(double)(3) == 6
  assert compiled == [torch.add, double]


def test_the_first_call_is_the_function_itself(monkeypatch):
  monkeypatch.setattr(torch, "compile", lambda _, **__: lambda *_: "compiled")

  def itself() -> str:
    return "itself"

  compiler = Compiler(Switch.on, CPU)
  call = compiler(itself)
  assert [call(), call(), compiler(itself)()] == ["itself", "compiled", "compiled"]
  assert compiler(itself) is call
  assert call.__name__ == "itself"


class Piece:
  """A piece of one learner."""

  def __init__(self, number: int) -> None:
    self.number = number

  def run(self, x: torch.Tensor) -> torch.Tensor:
    return x + self.number + 100 * torch.compiler.is_compiling()


def test_every_learner_of_a_process_is_compiled(monkeypatch):
  monkeypatch.setattr(torch, "compile", functools.partial(torch.compile, backend="eager"))
  found = []
  for number in range(12):
    piece = Compiler(Switch.on, CPU)(Piece(number).run)
    found.append([float(piece(torch.zeros(1))) for _ in range(2)])  # the first call is not compiled
  assert found == [[number, number + 100] for number in range(12)]


@pytest.mark.usefixtures("broken")
def test_where_it_fails_it_is_left_alone_or_a_mistake():
  with pytest.warns(UserWarning, match=r"^torch.compile fails here, so it is off \(.+\); write compile=off$"):
    assert not Compiler(Switch.auto, CUDA).used
  message = r"^compile=on: torch.compile fails here \(no C\+\+ compiler found\); write compile=off$"
  with pytest.raises(ConfigError, match=message):
    Compiler(Switch.on, CPU)
  assert not Compiler(Switch.off, CPU).used
