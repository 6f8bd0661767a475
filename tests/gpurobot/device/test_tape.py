import torch
from torch import nn

from gpurobot.device.graph import WARM_UPS
from gpurobot.device.tape import Tape


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


def test_a_replay_has_the_bits_of_the_function():
  (tape, memory, done), (other, expected, _) = learner(), learner()
  for _ in range(WARM_UPS + 5):
    tape()
    other.function()
    torch.testing.assert_close(memory, expected, rtol=0, atol=0)
  assert len(done) == WARM_UPS + 1


def test_static_memory_may_change_between_replays():
  (tape, memory, _), (other, expected, _) = learner(), learner()
  for _ in range(WARM_UPS + 2):
    tape()
    other.function()
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
