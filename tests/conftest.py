"""Shared fixtures: a torch thread, the checkout's own kernel cache, a device, and what `--quick` skips."""

import functools
import gc
import os
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

# Both are read once, on import of torch and warp; a test's own subprocesses inherit them. pytest-xdist
# already runs one worker per core, and kernels kept beside the checkout make a second run fast.
os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("WARP_CACHE_PATH", str(Path(__file__).parents[1] / ".pytest_cache" / "kernels"))
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)  # compiling all modules takes each subprocess a second

gc.set_threshold(100_000)  # a collection looks through all that torch and pytest hold, in tenths of a second

import pytest
import torch

from physics import simulation
from physics.trace import launcher

# Tests take turns with more models than a program has: tracing one, and writing its text, takes seconds.
simulation._trace = functools.lru_cache(12)(simulation._trace.__wrapped__)
launcher.build_kernel = functools.lru_cache(24)(launcher.build_kernel.__wrapped__)


def pytest_addoption(parser: pytest.Parser) -> None:
  parser.addoption(
    "--device", default="cpu", help="where tests of physics and of tasks simulate, such as cuda:0"
  )
  parser.addoption("--quick", action="store_true", help="skip what builds a kernel or starts a process")


@pytest.fixture(scope="session")
def device(request: pytest.FixtureRequest) -> torch.device:
  """Where to simulate."""
  return torch.device(request.config.getoption("--device"))


@pytest.fixture(autouse=True, scope="session")
def _quick(request: pytest.FixtureRequest) -> Iterator[None]:
  """With `--quick`, skip a test in the moment when it builds a kernel or starts a process."""
  with pytest.MonkeyPatch.context() as patch:
    if request.config.getoption("--quick"):
      patch.setattr(launcher, "build_kernel", lambda *_: pytest.skip("builds a kernel"))
      patch.setattr(subprocess, "Popen", lambda *_, **__: pytest.skip("starts a process"))
    yield


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
  if torch.cuda.is_available():
    return
  for item in items:
    if item.get_closest_marker("gpu"):
      item.add_marker(pytest.mark.skip(reason="needs a CUDA device"))


@pytest.fixture(scope="session")
def cluster() -> Iterator[str]:
  """Address of a Ray cluster of two CPUs; the tests that use it share a process."""
  ray = pytest.importorskip("ray")
  context = ray.init(num_cpus=2, log_to_driver=False, include_dashboard=False, logging_level="warning")
  yield context.address_info["address"]
  ray.shutdown()


@pytest.fixture
def keep_signal_handlers() -> Iterator[None]:
  """Give the signals back that a program takes over."""
  taken = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
  before = {number: signal.getsignal(number) for number in taken}
  yield
  for number, handler in before.items():
    signal.signal(number, handler)
