"""Training on a GPU: recorded as graphs, waiting for nothing, the same bits again, and a CPU's numbers.

Few cases are compiled, as that takes most of a minute; `tests/gpurobot/test_capture.py` follows the compiler.
"""

from collections.abc import Iterator

import pytest
import torch

from gpurobot.device import executor
from gpurobot.device.graph import Graph
from tests.gpurobot.test_capture import CASES, ITERATIONS, make_learner, tensors, train

pytestmark = [pytest.mark.gpu, pytest.mark.filterwarnings("error:no CUDA graph")]
DEVICE = "cuda"
COMPILED = (
  "cartpole, shaken and mirrored, squashed and twohot",
  "toy, choices, lstm, learned rewards, invalid steps",
)
PLAIN = {name: (module, settings | {"compile": "off"}) for name, (module, settings) in CASES.items()}
KINDS = PLAIN | {
  f"{name}, compiled": (CASES[name][0], CASES[name][1] | {"compile": "on"}) for name in COMPILED
}
every_kind = pytest.mark.parametrize(("module", "settings"), KINDS.values(), ids=KINDS)
CLOSE, CLOSE_BF16 = 1e-3, 2e-2  # what a few steps of physics and two epochs make of other sums


@pytest.fixture
def graphs(monkeypatch: pytest.MonkeyPatch) -> list[Graph]:
  """The graphs of learners made in the test."""
  made: list[Graph] = []
  monkeypatch.setattr(executor, "Graph", lambda *words, **own: made.append(Graph(*words, **own)) or made[-1])
  return made


@pytest.fixture(autouse=True)
def _compiled_anew() -> None:
  """Forget what was compiled for other learners: of one function torch compiles a few versions at most."""
  torch._dynamo.reset()


@pytest.fixture
def no_waiting() -> Iterator[None]:
  """Let what waits for the GPU fail, once something is run."""
  yield
  torch.cuda.set_sync_debug_mode("default")


@every_kind
def test_every_part_is_recorded(graphs, module, settings):
  train(make_learner(module, settings, DEVICE), ITERATIONS)
  assert graphs
  assert all(graph.recorded for graph in graphs if graph._calls)


@every_kind
@pytest.mark.usefixtures("no_waiting")
def test_an_iteration_waits_for_nothing(module, settings):
  learner = make_learner(module, settings, DEVICE)
  train(learner, ITERATIONS)
  torch.cuda.set_sync_debug_mode("error")
  learner.collect()
  learner.update()


@every_kind
def test_the_same_seed_gives_the_same_bits(module, settings):
  one, other = (make_learner(module, settings, DEVICE) for _ in range(2))
  for first, second in zip(train(one, ITERATIONS), train(other, ITERATIONS), strict=True):
    torch.testing.assert_close(first, second, rtol=0, atol=0, equal_nan=True)
  assert all(map(torch.equal, one.network.parameters(), other.network.parameters()))


@every_kind
def test_the_cpu_finds_the_same(module, settings):
  close = CLOSE_BF16 if settings.get("ppo.precision") == "bf16" else CLOSE
  here = make_learner(module, settings, DEVICE)
  there = make_learner(module, settings | {"compile": "off"}, "cpu")
  for found, expected in zip(train(here, 1), train(there, 1), strict=True):
    torch.testing.assert_close(found.cpu(), expected, rtol=close, atol=close, equal_nan=True)
  moments = (tensors(dict(learner.observations.state_dict())) for learner in (here, there))
  for found, expected in zip(*moments, strict=True):
    torch.testing.assert_close(found.cpu(), expected, rtol=close, atol=close)
