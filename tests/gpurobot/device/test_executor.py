import pytest
import torch

from gpurobot.device import executor
from gpurobot.device.executor import Executor
from gpurobot.device.graph import WARM_UPS
from gpurobot.device.tape import Tape
from gpurobot.settings.config import Switch, TrainConfig

CPU = torch.device("cpu")


def make(**settings) -> Executor:
  return Executor(TrainConfig(**settings), CPU, lambda text: [text])


def test_on_a_cpu_pieces_are_called_as_they_are():
  done: list[str] = []
  pieces = make()
  for run in (pieces.run, pieces.run_parts):
    run(lambda: done.append("once"))
  assert done == ["once", "once"]
  assert not pieces.prepares
  assert pieces.compiled(torch.add) is torch.add


def test_a_piece_is_compiled_whole_or_left_to_compile_its_parts(monkeypatch):
  compiled: list[object] = []
  monkeypatch.setattr(executor, "Compiler", lambda *_: lambda piece: compiled.append(piece) or piece)
  pieces, done = make(), []

  def whole():
    done.append("whole")

  def parts():
    done.append("parts")

  for _ in range(2):
    pieces.run(whole)
    pieces.run_parts(parts)
  assert done == ["whole", "parts"] * 2
  assert set(compiled) == {whole}


@pytest.mark.parametrize(
  ("settings", "calls"),
  [({}, WARM_UPS + 2), ({"graphs": Switch.off}, WARM_UPS + 4), ({"compile": Switch.on}, WARM_UPS + 4)],
)
def test_on_a_cpu_pieces_of_tensor_operations_are_replayed(monkeypatch, settings, calls):
  monkeypatch.setattr(executor, "Compiler", lambda *_: lambda piece: piece)
  pieces, done, count = make(**settings), list[str](), torch.zeros(())

  def piece() -> None:
    done.append("called")
    count.add_(1)

  for _ in range(WARM_UPS + 4):
    pieces.run(piece, tape=True)
  assert (len(done), int(count)) == (calls, WARM_UPS + 4)


def test_on_a_cpu_a_part_of_a_piece_is_replayed_on_the_tensors_it_gets():
  part, count = make().taped(torch.Tensor.neg_), torch.zeros(2, WARM_UPS + 4)
  for tensor in count.add_(1).unbind(1):
    part(tensor)
  assert count.eq(-1).all()
  assert isinstance(part, Tape)
  assert make(graphs=Switch.off).taped(torch.Tensor.neg_) == torch.Tensor.neg_
