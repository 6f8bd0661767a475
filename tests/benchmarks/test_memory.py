import pytest

from benchmarks import memory
from tests.gpurobot import toy

ITERATIONS = 100
LEAK = 1024 * 4 * 8 * ITERATIONS / 1e6  # of 1024 numbers in each of 8 steps [MB]
pytestmark = pytest.mark.usefixtures("keep_signal_handlers")


def grow(task: str) -> float:
  words = [f"task={task}", "num_envs=64", "ppo.epochs=1", f"max_iterations={ITERATIONS}", "log_every=2"]
  samples = memory.measure(words)
  assert len(samples) == ITERATIONS
  return memory.growth(samples)


def test_growth_leaves_the_start_out():
  assert memory.growth([0.0] * 10 + [1.0, 3.0] * 5 + [7.0] * 70 + [4.0, 6.0] * 5) == 3


def test_a_training_keeps_its_memory():
  assert grow(toy.__file__) < 0.2 * LEAK  # 0.02 of it was seen


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
