"""Run every benchmark, or those named: `python -m benchmarks [kernel] [engine] [training]`."""

import importlib
import sys

RUNNERS = ("kernel", "engine", "training")

if __name__ == "__main__":
  for name in sys.argv[1:] or RUNNERS:
    importlib.import_module(f"benchmarks.{name}").run()
