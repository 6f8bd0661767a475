import pytest
import torch
from tensordict import TensorDict

import train
from gpurobot import evaluate
from gpurobot.env import VecEnv
from gpurobot.random import Random
from tests.gpurobot import toy


class Counting:
  """Episodes of environment i last i + 1 steps and end; the reward is 1, the metric is i."""

  num_envs = 3
  device = torch.device("cpu")

  def reset(self):
    self.age = torch.zeros(3, dtype=torch.int64)
    return TensorDict({"policy": torch.zeros(3, 1)}, [3])

  def step(self, _action):
    self.age += 1
    ended = self.age > torch.arange(3)
    self.age.masked_fill_(ended, 0)
    flags = {"terminated": ended, "truncated": torch.zeros_like(ended), "valid": torch.ones_like(ended)}
    metrics, success = {"index": torch.arange(3.0)}, ended & (torch.arange(3) == 2)
    obs = {"policy": torch.zeros(3, 1)}
    return TensorDict(
      {"obs": obs, "reward": torch.ones(3), "metrics": metrics, "success": success, **flags}, [3]
    )


@pytest.mark.parametrize("rounds", [1, 4])
def test_short_episodes_count_no_more_than_long_ones(rounds):
  result = evaluate.run(Counting(), lambda *_: torch.zeros(3, 1), rounds)
  assert sorted(result.returns.tolist()) == sorted([1.0, 2.0, 3.0] * rounds)
  assert result.lengths.tolist() == result.returns.tolist()
  assert result.success == pytest.approx(1 / 3)
  assert result.metrics["index"] == pytest.approx((0 * 1 + 1 * 2 + 2 * 3) / 6)


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
  folder = tmp_path_factory.mktemp("run")
  train.main([f"task={toy.__file__}", f"run_dir={folder}", "max_iterations=20"])
  return folder


def lines(capsys) -> dict[str, float]:
  return {
    name: float(value) for name, value in (line.split(": ") for line in capsys.readouterr().out.splitlines())
  }


def test_a_run_folder_is_evaluated(trained, capsys):
  evaluate.main([f"checkpoint={trained}", "episodes=40", "num_envs=16"])
  found = lines(capsys)
  assert found["episodes"] == 48
  assert found["length"] == 20
  assert -8 < found["return"] < 0
  assert 0 < found["return_interval_95"] < 1
  assert found["speed"] > 0
  assert "success" not in found
  evaluate.main([f"checkpoint={trained}", "episodes=40", "num_envs=16"])
  assert lines(capsys) == found


def test_the_policy_is_better_without_noise(trained, capsys):
  evaluate.main([f"checkpoint={trained}", "seed=1"])
  found = lines(capsys)
  random = Random(1, 100)
  env = toy.Task(toy.Config(), 100, random=random, training=False)
  noise = evaluate.run(env, lambda *_: torch.randn(100, 2), 1)
  assert found["return"] - found["return_interval_95"] > float(noise.returns.mean())


def test_a_policy_of_gymnasium_s_task_does_as_well_in_gymnasium_itself(tmp_path, capsys):
  words = ["task=gym/InvertedPendulum-v5", "num_envs=64", "threads=1", "max_iterations=3"]
  train.main([*words, f"run_dir={tmp_path}"])
  found = {}
  for engine in ("own", "gymnasium"):
    capsys.readouterr()
    evaluate.main([f"checkpoint={tmp_path}", "episodes=50", f"engine={engine}"])
    found[engine] = lines(capsys)
  own, unmodified = found["own"], found["gymnasium"]
  assert list(own) == list(unmodified)
  assert 15 < own["return"] < 1000
  assert (
    abs(own["return"] - unmodified["return"]) < own["return_interval_95"] + unmodified["return_interval_95"]
  )


def test_gymnasium_is_for_its_own_tasks(trained, capsys):
  with pytest.raises(SystemExit):
    evaluate.main([f"checkpoint={trained}", "engine=gymnasium"])
  message = capsys.readouterr().err
  assert message.startswith("error: engine=gymnasium is for policies of the tasks gym/*; this one's is ")
  assert message.count("\n") == 1


@pytest.mark.parametrize(("words", "message"), [
  ([], "checkpoint=<run folder or .pt file> is missing"),
  (["checkpoint=nowhere"], "no checkpoint at 'nowhere'"),
  (["engine=mujocco"], "engine=mujocco is not one of own, mujoco, gymnasium; the nearest is 'mujoco'"),
  (["episode=3"], "unknown key 'episode'; the nearest is 'episodes'"),
])  # fmt: skip
def test_bad_input_ends_with_one_line_and_status_2(words, message, capsys):
  with pytest.raises(SystemExit) as end:
    evaluate.main(words)
  assert end.value.code == 2
  assert capsys.readouterr().err.startswith(f"error: {message}")


def test_help(capsys):
  evaluate.main(["--help"])
  assert "episodes=100" in capsys.readouterr().out


def test_the_toy_is_an_environment():
  assert isinstance(toy.Task(toy.Config(), 2, random=Random(0, 2)), VecEnv)
