import re
import subprocess
import sys
from pathlib import Path

from benchmarks.training import memory_growth
from tests.gpurobot import toy

ROOT = Path(__file__).parents[2]
ITERATIONS = 100
LEAK = 1024 * 4 * 8 * ITERATIONS / 1e6  # of 1024 numbers in each of 8 steps [MB]


def grow(task: str) -> float:
  """Return the growth [MB] in a process of its own: this one has memory of other tests to reuse."""
  words = [f"task={task}", "num_envs=64", "ppo.horizon=8", f"max_iterations={ITERATIONS}", "log_every=2"]
  words += ["compile=off"]  # fused functions take 25 MB once, after a hundred steps
  command = [sys.executable, "-m", "benchmarks.training.memory_growth", *words]
  done = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True)
  return float(re.search(r"^memory\.growth_mb: (.*)$", done.stdout, re.MULTILINE)[1])


def test_growth_leaves_the_start_out():
  assert memory_growth.growth([0.0] * 10 + [1.0, 3.0] * 5 + [7.0] * 70 + [4.0, 6.0] * 5) == 3


def test_a_training_keeps_its_memory():
  # A leak shows in every run. Without one, 0.02 to 0.04 of it was seen, but 0.7 in one run of seven.
  assert any(grow(toy.__file__) < 0.3 * LEAK for _ in range(3))


def test_a_leak_is_seen(tmp_path):
  task = tmp_path / "leaky.py"
  task.write_text(
    "import torch\n"
    "from tests.gpurobot import toy\n"
    "from tests.gpurobot.toy import PPO, Config\n"
    "kept = []\n"
    "class Task(toy.Task):\n"
    "  def step(self, action):\n"
    "    kept.append(torch.ones(1024))\n"
    "    return super().step(action)\n"
  )
  assert grow(str(task)) > 0.5 * LEAK
