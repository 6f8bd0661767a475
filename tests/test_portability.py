"""Training on a system that lacks what only some systems have."""

import csv
import re
import subprocess
import sys

from tests.test_house import ROOT, SHIPPED

# The libraries come first: each looks after itself.
PROGRAM = """
import os, signal, sys
import mujoco, tensordict, torch.distributed, warp
from tensorboard.summary.writer import event_file_writer

for module in ("fcntl", "grp", "pwd", "resource", "termios"):
  sys.modules[module] = None  # to import it is an ImportError
for name in ("ALRM", "CHLD", "HUP", "KILL", "PIPE", "QUIT", "USR1", "USR2"):
  vars(signal).pop(f"SIG{name}", None)
for name in (
  "O_DIRECTORY", "SCHED_IDLE", "fork", "getuid", "killpg", "nice", "sched_getaffinity", "sched_setscheduler",
  "setpriority", "setsid", "sysconf", "uname",
):
  vars(os).pop(name, None)

import train
sys.exit(train.main(sys.argv[1:]))
"""


def test_training_needs_no_more_of_the_system_than_every_system_has(tmp_path):
  words = ["task=cartpole", "num_envs=64", "max_iterations=2", f"run_dir={tmp_path}"]
  command = [sys.executable, "-c", PROGRAM, *words]
  done = subprocess.run(command, cwd=ROOT, check=False, capture_output=True, text=True)
  assert done.returncode == 0, done.stderr
  assert done.stderr.splitlines() == [
    f"warning: '{tmp_path}' cannot be locked (Function not implemented); do not start a second run there"
  ]
  assert (tmp_path / "checkpoint.pt").exists()
  with (tmp_path / "metrics.csv").open() as file:
    assert {row["memory/process"] for row in csv.DictReader(file)} == {"nan"}


def test_what_some_systems_lack_is_asked_for_in_one_place() -> None:
  """Each of these files says what happens without it; physics and the trainer import none of each other."""
  lacked = re.compile(r"\b(fcntl|resource|sched_getaffinity|SIGHUP|SIGPIPE|sysconf|O_DIRECTORY)\b(?! = None)")
  found = {(word, path) for path in SHIPPED for word in lacked.findall((ROOT / path).read_text())}
  assert {word: sorted(path for other, path in found if other == word) for word, _ in found} == {
    "fcntl": ["gpurobot/run/folder.py"],
    "resource": ["gpurobot/device/usage.py", "physics/trace/threads.py"],
    "sched_getaffinity": ["gpurobot/device/process.py", "physics/trace/threads.py"],
    "SIGHUP": ["gpurobot/run/interrupt.py"],
    "SIGPIPE": ["gpurobot/run/interrupt.py"],
    "sysconf": ["gpurobot/device/usage.py", "physics/camera/renderer.py"],
    "O_DIRECTORY": ["gpurobot/run/files.py"],
  }
