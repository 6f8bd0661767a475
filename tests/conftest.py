"""What every test shares: one torch thread, the checkout's own kernel cache, a device; GPU tests need one."""

import os
import signal
from collections.abc import Iterator
from pathlib import Path

# Both are read once, on import of torch and warp; a test's own subprocesses inherit them. pytest-xdist
# already runs one worker per core, and kernels kept beside the checkout make a second run fast.
os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("WARP_CACHE_PATH", str(Path(__file__).parents[1] / ".pytest_cache" / "kernels"))

import pytest
import torch


def pytest_addoption(parser: pytest.Parser) -> None:
  parser.addoption(
    "--device", default="cpu", help="where tests of physics and of tasks simulate, such as cuda:0"
  )


@pytest.fixture(scope="session")
def device(request: pytest.FixtureRequest) -> torch.device:
  """Where to simulate."""
  return torch.device(request.config.getoption("--device"))


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
  if torch.cuda.is_available():
    return
  for item in items:
    if item.get_closest_marker("gpu"):
      item.add_marker(pytest.mark.skip(reason="needs a CUDA device"))


@pytest.fixture
def keep_signal_handlers() -> Iterator[None]:
  """Give the signals back that a program takes over."""
  taken = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
  before = {number: signal.getsignal(number) for number in taken}
  yield
  for number, handler in before.items():
    signal.signal(number, handler)
