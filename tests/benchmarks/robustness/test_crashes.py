import subprocess
import sys

import pytest

from benchmarks.robustness import crashes
from gpurobot.run import checkpoint
from tests.gpurobot import toy

WORDS = [f"task={toy.__file__}", "threads=1", "checkpoint_seconds=0", "log_every=1"]


def test_a_training_that_is_killed_ends_where_one_that_is_not_does(tmp_path):
  counts = crashes.compare(tmp_path, WORDS, 1)
  assert counts["iterations"] > crashes.MORE
  assert [counts[name] for name in ("unreadable", "different_tensors", "different_rows")] == [0, 0, 0]
  changed = checkpoint.read(tmp_path / "killed")
  next(iter(changed["learner"]["network"].values())).add_(1)
  checkpoint.write(tmp_path / "killed", changed)
  table = tmp_path / "killed" / "metrics.csv"
  heading, *rows = table.read_text().splitlines()
  table.write_text("\n".join([heading, *(row.replace("0", "1") for row in rows)]) + "\n")
  assert crashes.differences(tmp_path / "killed", tmp_path / "whole")[0] == 1
  assert crashes.differences(tmp_path / "killed", tmp_path / "whole")[1] > 0


@pytest.mark.slow
def test_ranks_that_are_killed_end_where_others_do(tmp_path):
  counts = crashes.compare(tmp_path, WORDS, 1, 2)
  assert [counts[name] for name in ("unreadable", "different_tensors", "different_rows")] == [0, 0, 0]


def test_the_ranks_of_a_launch_are_its_children():
  program = (
    "import subprocess; children = [subprocess.Popen(['sleep', '600']) for _ in range(2)]; print(flush=True)"
  )
  program += "; [child.wait() for child in children]"
  with subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE) as job:
    job.stdout.readline()
    found = crashes.ranks(job)
    assert len(found) == 2
    subprocess.run(["kill", *map(str, found)], check=True)
