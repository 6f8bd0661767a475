import pytest
import torch

from gpurobot import distributed
from gpurobot.config import ConfigError
from gpurobot.distributed import World


def test_alone_every_operation_is_the_identity(monkeypatch):
  monkeypatch.delenv("WORLD_SIZE", raising=False)
  world = distributed.start()
  assert world == World()
  assert world.main
  x = torch.arange(3.0)
  assert world.sum_(x) is world.broadcast_(x) is x
  assert x.tolist() == [0, 1, 2]
  assert world.agree(True, False) == [True, False]
  assert world.same("a") == "a"
  assert world.gather("a") == ["a"]


def test_one_torchrun_rank_is_alone_too(monkeypatch):
  for name, value in {"WORLD_SIZE": "1", "RANK": "0", "LOCAL_RANK": "0", "LOCAL_WORLD_SIZE": "1"}.items():
    monkeypatch.setenv(name, value)
  assert distributed.start() == World()


def test_devices(monkeypatch):
  assert World().device("cpu") == torch.device("cpu")
  monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
  assert World().device("auto") == torch.device("cpu")
  monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
  monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
  assert World(3, 4, 1, 2).device("auto") == torch.device("cuda:1")
  assert World().device("cuda:1") == torch.device("cuda:1")
  with pytest.raises(
    ConfigError, match=r"^device=cuda:2: this machine has 2 CUDA GPU\(s\); the nearest is 'cpu'$"
  ):
    World().device("cuda:2")
  for wrong, near in (("gpu", "cpu"), ("kuda", "cuda"), ("mps", "cpu"), ("automatic", "auto")):
    with pytest.raises(ConfigError, match=f"the nearest is '{near}'$"):
      World().device(wrong)
