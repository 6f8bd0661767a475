"""The message of a user's mistake: one line on standard error, and status 2."""

from collections.abc import Callable

import pytest

from tests.gpurobot import toy

BUILDING = "building a kernel for "  # told where the cache of kernels is empty
TOY = f"task={toy.__file__}"
SMALL = ["num_envs=16", "max_iterations=1", "threads=1", "ppo.hidden=[8]", "ppo.horizon=8"]


def told(capsys: pytest.CaptureFixture[str], program: Callable[[list[str]], object], words: list[str]) -> str:
  """Run a program that ends with a mistake; return the line that tells it."""
  with pytest.raises(SystemExit) as end:
    program(words)
  assert end.value.code == 2
  (line,) = [line for line in capsys.readouterr().err.splitlines() if not line.startswith(BUILDING)]
  assert line.startswith("error: ")
  return line.removeprefix("error: ").rstrip()
