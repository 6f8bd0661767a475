"""`python -m tasks`: the program `gpurobot.tasks`, which stands above this package."""

import runpy

if __name__ == "__main__":
  runpy.run_module("gpurobot.tasks", run_name="__main__")
