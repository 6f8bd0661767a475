"""Entry point of `python -m tasks`, which runs the program `gpurobot.tasks`."""

import runpy

if __name__ == "__main__":
  runpy.run_module("gpurobot.tasks", run_name="__main__")
