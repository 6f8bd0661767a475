"""Modules that lie in a folder which somebody was given: none of them may run."""

import os
import sys
from pathlib import Path

RAN, FLAGS = "ran.txt", os.O_WRONLY | os.O_APPEND | os.O_CREAT
LIBRARIES = ("PIL", "imageio", "mujoco", "numpy", "omegaconf", "tensordict", "torch", "warp", "yaml")
OWN = ("gpurobot", "physics", "tasks", "train", "assets")
# What Python itself imports before a program of `python -m` runs is not to be helped.
AFTER_START = (*LIBRARIES, *OWN[1:], "csv", "json", "logging", "socket", "subprocess", "tempfile")


def plant(folder: Path, names=(*sys.stdlib_module_names, *LIBRARIES, *OWN, "sitecustomize", "usercustomize")):
  """Put a module of each name into a folder, which notes that it ran."""
  for name in names:
    note = f"posix.write(posix.open({str(folder / RAN)!r}, {FLAGS}, 0o600), b'{name} ')"
    (folder / f"{name}.py").write_text(f"import posix; {note}")  # as Python starts there is no `open` yet


def ran(folder: Path) -> str:
  """Return the names of the planted modules that have run."""
  return (folder / RAN).read_text() if (folder / RAN).exists() else ""
