import json
from types import SimpleNamespace

import pytest
import torch

from gpurobot.device.clock import Clock
from gpurobot.device.distributed import World
from gpurobot.learn.ppo import PPO
from gpurobot.learn.random import Random
from gpurobot.run.profile import ITERATIONS, MEASURED, Profile, table
from gpurobot.settings.config import assign, defaults
from tests.gpurobot import toy


def test_the_table_shows_parts_and_their_pieces_by_size():
  before = {"physics": 1.0}
  after = {"physics": 1.3, "update": 0.1, "update/forward": 0.2, "update/backward": 0.4}
  assert table(before, after, 4, 1.0).splitlines() == [
    "iteration                250.00 ms   100.0%",
    "update                   175.00 ms    70.0%",
    "  backward               100.00 ms    40.0%",
    "  forward                 50.00 ms    20.0%",
    "  rest                    25.00 ms    10.0%",
    "physics                   75.00 ms    30.0%",
  ]
  overlapped = table(before, after, 4, 0.5).splitlines()  # the parts of two threads
  assert overlapped[0] == "iteration, at once       125.00 ms   100.0%"
  assert overlapped[1] == "update                   175.00 ms   140.0%"


@pytest.fixture(scope="module")
def profiled(tmp_path_factory):
  folder = tmp_path_factory.mktemp("run")
  config = assign(defaults(toy), {})
  learner = PPO(toy.Task(config.env, 64, random=Random(0, 64)), config, World())
  profile, told = Profile(learner, folder), []
  for _ in range(ITERATIONS + 1):
    learner.collect()
    learner.update()
    told.append(profile.step())
  return folder, told


def test_nsight_systems_looks_at_the_measured_iterations_of_a_gpu(tmp_path, monkeypatch):
  """torch's profiler, which cannot share the GPU with it, runs after them."""
  clock = Clock(torch.device("cpu"))
  learner = SimpleNamespace(clock=clock, iteration=0, device=torch.device("cuda"))
  told = []
  monkeypatch.setattr(torch.cuda.nvtx, "range_push", told.append)
  monkeypatch.setattr(torch.cuda.nvtx, "range_pop", lambda: None)
  for name in ("start", "stop"):
    monkeypatch.setattr(torch.cuda.profiler, name, lambda name=name: told.append(f"{name} Nsight Systems"))
    torchs = lambda _self, name=name: told.append(f"{name} torch")  # noqa: E731
    monkeypatch.setattr(torch.profiler.profile, name, torchs)
  profile = Profile(learner, tmp_path)
  monkeypatch.setattr(profile, "_write", lambda: "written")
  for learner.iteration in range(1, ITERATIONS + 1):
    clock.begin(f"iteration {learner.iteration}")
    profile.step()
  clock.begin("unseen")
  first, last = (told.index(f"{name} Nsight Systems") for name in ("start", "stop"))
  measured = [name for name in told[first:last] if name.startswith("iteration")]
  # Reading the clock begins the present part anew.
  assert list(dict.fromkeys(measured))[-MEASURED:] == [f"iteration {n}" for n in range(4, 9)]
  assert last < told.index("start torch") < told.index("stop torch")
  assert "unseen" not in told


def test_a_run_is_profiled_once(profiled):
  folder, told = profiled
  assert [text is not None for text in told] == [False] * (ITERATIONS - 1) + [True, False]
  text = (folder / "profile.txt").read_text()
  assert told[-2].startswith(text)
  assert "trace.json" in told[-2]


def test_every_part_of_an_iteration_has_its_share(profiled):
  folder, _ = profiled
  _, *lines = (folder / "profile.txt").read_text().split("\n\n")[0].splitlines()
  shares = {line[:20].rstrip(): float(line.split()[-1].removesuffix("%")) for line in lines}
  parts = {name for name in shares if not name.startswith(" ")}
  assert parts == {"rollout", "task", "policy", "storage", "update", "other"}
  assert sum(shares[part] for part in parts) == pytest.approx(100, abs=0.3)  # each is rounded to 0.1
  assert sum(shares[f"  {piece}"] for piece in ("forward", "backward", "optimizer")) > 0.5 * shares["update"]


def test_the_trace_shows_parts_and_operators(profiled):
  folder, _ = profiled
  events = json.loads((folder / "trace.json").read_text())["traceEvents"]
  names = [event.get("name") for event in events if event.get("ph") == "X"]
  assert {"policy", "task", "storage", "update/backward", "aten::addmm"} <= set(names)
  assert names.count("task") == 2 * 8
