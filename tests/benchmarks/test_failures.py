import subprocess
import sys

import pytest

from benchmarks import failures
from tests.gpurobot import toy


@pytest.mark.slow
def test_ranks_that_are_killed_end_where_others_do(tmp_path):
  words = [f"task={toy.__file__}", "threads=1", "checkpoint_seconds=0", "log_every=1"]
  counts = failures.compare(tmp_path, words, 1)
  assert [counts[name] for name in ("unreadable", "different_tensors", "different_rows")] == [0, 0, 0]


def test_the_ranks_of_a_launch_are_its_children():
  program = (
    "import subprocess; children = [subprocess.Popen(['sleep', '600']) for _ in range(2)]; print(flush=True)"
  )
  program += "; [child.wait() for child in children]"
  with subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE) as job:
    job.stdout.readline()
    found = failures.ranks(job)
    assert len(found) == 2
    subprocess.run(["kill", *map(str, found)], check=True)
