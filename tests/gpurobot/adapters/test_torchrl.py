import pytest
import torch

pytest.importorskip("torchrl", reason="comes with the extra 'libraries'")
from torchrl.collectors import Collector
from torchrl.envs.utils import check_env_specs

from gpurobot.adapters.torchrl import TorchRLEnv
from tests.gpurobot import toy, toy_choices


@pytest.mark.parametrize("task", [toy, toy_choices])
def test_torchrl_s_checker_finds_what_is_specified(task):
  check_env_specs(TorchRLEnv(task.__file__, 3), seed=0)


def test_a_collector_sees_each_episode_end_and_the_next_begin():
  env = TorchRLEnv(toy.__file__, 4, training=False, episode_steps=5)
  env.set_seed(0)
  torch.manual_seed(0)  # of the random actions, with which an episode may end early
  (data,) = Collector(env, None, frames_per_batch=48, total_frames=48)
  root, after = data["policy"], data["next", "policy"]  # [4, 12, 2]
  assert data["next", "truncated"].squeeze(-1).sum(1).tolist() == [2] * 4
  goes_on = ~data["next", "done"][:, :-1, 0]
  assert torch.equal(root[:, 1:][goes_on], after[:, :-1][goes_on])
  assert not torch.isclose(root[:, 1:][~goes_on], after[:, :-1][~goes_on]).any()
  assert float(root[:, 1:][~goes_on].abs().max()) <= 1  # where the toy's episodes start


def test_a_seed_is_for_the_next_full_reset_alone():
  env = TorchRLEnv(toy.__file__, 2)
  env.set_seed(3)
  first = env.reset()
  env.rand_step(first.clone())
  assert not torch.equal(env.reset()["policy"], first["policy"])
  env.set_seed(3)
  assert torch.equal(env.reset()["policy"], first["policy"])


def test_an_episode_that_goes_on_cannot_be_reset_alone():
  env = TorchRLEnv(toy.__file__, 2)
  state = env.rand_step(env.reset())["next"]
  state["_reset"] = torch.tensor([[True], [False]])
  with pytest.raises(ValueError, match="set episode_steps"):
    env.reset(state)
  state["_reset"] = torch.tensor([[True], [True]])
  assert not env.reset(state)["done"].any()
