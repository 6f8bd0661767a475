"""Run every benchmark, or those named, such as `python -m benchmarks kernel training`."""

import importlib
import sys

RUNNERS = ("kernel", "cuda", "engine", "training", "iteration", "scaling", "memory", "gym_parity")

if __name__ == "__main__":
  for name in sys.argv[1:] or RUNNERS:
    importlib.import_module(f"benchmarks.{name}").run()
