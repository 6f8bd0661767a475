"""Entry point of `python -m benchmarks [name ...]`, which runs the named benchmarks, by default all.

The ratios that they print are kept by commit, see `benchmarks/history.py`.
"""

import importlib
import sys

from benchmarks import history, report

RUNNERS = (
  "kernel",
  "camera",
  "seeing",
  "cuda",
  "engine",
  "training",
  "iteration",
  "off_policy",
  "overlap",
  "scaling",
  "memory",
  "gym_parity",
  "dm_parity",
)

if __name__ == "__main__":
  for name in sys.argv[1:] or RUNNERS:
    importlib.import_module(f"benchmarks.{name}").run()
  history.keep(report.printed)
