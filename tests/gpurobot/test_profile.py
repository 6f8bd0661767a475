import json

import pytest

from gpurobot.config import assign, defaults
from gpurobot.distributed import World
from gpurobot.ppo import Learner
from gpurobot.profile import ITERATIONS, Profile, table
from gpurobot.random import Random
from tests.gpurobot import toy


def test_the_table_shows_parts_and_their_pieces_by_size():
  before = {"physics": 1.0}
  after = {"physics": 1.3, "update": 0.1, "update/forward": 0.2, "update/backward": 0.4}
  assert table(before, after, 4).splitlines() == [
    "an iteration             250.00 ms   100.0%",
    "update                   175.00 ms    70.0%",
    "  backward               100.00 ms    40.0%",
    "  forward                 50.00 ms    20.0%",
    "  rest                    25.00 ms    10.0%",
    "physics                   75.00 ms    30.0%",
  ]


@pytest.fixture(scope="module")
def profiled(tmp_path_factory):
  folder = tmp_path_factory.mktemp("run")
  config = assign(defaults(toy), {})
  learner = Learner(toy.Task(config.env, 64, random=Random(0, 64)), config, World())
  profile, told = Profile(learner, folder), []
  for _ in range(ITERATIONS + 1):
    learner.collect()
    learner.update()
    told.append(profile.step())
  return folder, told


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
