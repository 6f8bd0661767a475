"""Entry point of `python -m benchmarks [name ...]`, which runs the named benchmarks, by default all.

The ratios that they print are kept by commit, see `benchmarks/history.py`: after each benchmark, so that one
that fails takes no others with it.
"""

import importlib
import sys
from collections.abc import Sequence

from benchmarks import history, report

RUNNERS = (
  "physics.kernel_build",
  "cameras.rendering",
  "cameras.training",
  "physics.cuda_build",
  "physics.speed",
  "training.ppo",
  "training.iteration",
  "training.sac",
  "training.scaling",
  "training.memory_growth",
  "parity.gym_tasks",
  "parity.dm_tasks",
)


def main(names: Sequence[str]) -> None:
  """Run the named benchmarks, or all."""
  report.check_names(names, RUNNERS)
  for name in names or RUNNERS:
    importlib.import_module(f"benchmarks.{name}").run()
    history.keep(report.printed)


if __name__ == "__main__":
  main(sys.argv[1:])
