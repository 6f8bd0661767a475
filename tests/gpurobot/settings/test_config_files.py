import json
from pathlib import Path

import numpy as np
import pytest

import gpurobot
import train
from gpurobot.device.distributed import World
from gpurobot.settings import config_files
from gpurobot.settings.config import ConfigError, to_dict
from gpurobot.shell import cli
from tasks import load
from tests.gpurobot import toy

TOY = f"task={toy.__file__}"
FIRST = """
num_envs: 64
ppo:
  lr: 1e-4
  hidden: [8, 8]
sac.gamma: 0.5  # of an algorithm that is not used
"""


@pytest.fixture
def files(tmp_path) -> list[str]:
  texts = {"first.yaml": FIRST, "second.yaml": "ppo.lr: 2e-4\nmax_seconds: null\nenv: {force: 0.25}"}
  for name, text in texts.items():
    (tmp_path / name).write_text(text)
  return [str(tmp_path / name) for name in texts]


def parse(*words: str) -> dict:
  return to_dict(cli.parse([TOY, *words], load, World())[0])


def chosen(settings: dict) -> list:
  return [settings[key] for key in ("num_envs", "ppo.lr", "ppo.hidden", "sac.gamma", "env.force")]


def test_later_files_win_and_words_win_over_files(files):
  one, two = files
  assert chosen(parse(f"config={one}")) == [64, 1e-4, [8, 8], 0.5, 0.5]
  assert chosen(parse(f"config={one},{two}")) == [64, 2e-4, [8, 8], 0.5, 0.25]
  assert chosen(parse(f"config={two}", f"config={one}")) == [64, 1e-4, [8, 8], 0.5, 0.25]
  assert chosen(parse(f"config={one}", "ppo.lr=3e-4", "num_envs=8")) == [8, 3e-4, [8, 8], 0.5, 0.5]


def test_settings_of_a_file_without_effect_are_told(files, recwarn):
  parse(f"config={files[0]}", "ppo.rnd.weight=1")
  assert [str(told.message) for told in recwarn] == ["sac.gamma has no effect with algorithm=ppo"]
  Path(files[0]).write_text("ppo.rnd.lr: 0.5\nppo.recurrent_units: 8")
  parse(f"config={files[0]}")
  assert [str(told.message) for told in recwarn][1:] == [
    "ppo.recurrent_units has no effect with ppo.recurrent=none",
    "ppo.rnd.lr has no effect with ppo.rnd.weight=0",
  ]


def test_a_resumed_run_tells_what_has_no_effect_of_a_file(tmp_path, recwarn):
  """A file that holds what the run has anyway, as its config.json does, says nothing new."""
  train.main([TOY, "num_envs=8", "max_iterations=1", f"run_dir={tmp_path / 'a'}"])
  resumed = f"resume={tmp_path / 'a'}"
  parse(resumed, f"config={tmp_path / 'a' / 'config.json'}")
  assert not recwarn
  file = tmp_path / "mine.yaml"
  file.write_text("sac.lr: 0.5\nppo.log_std_init: 0.5")
  parse(resumed, f"config={file}")
  assert sorted(str(told.message) for told in recwarn) == [
    "ppo.log_std_init has no effect on a resumed run",
    "sac.lr has no effect with algorithm=ppo",
  ]
  file.write_text("checkpoint: b")
  with pytest.raises(ConfigError, match=r"^checkpoint=b has no effect with resume="):
    parse(resumed, f"config={file}")


def test_a_file_may_name_the_task_and_the_algorithm(tmp_path):
  file = tmp_path / "all.yaml"
  file.write_text(f"{TOY.replace('=', ': ')}\nalgorithm: sac\n")
  config, module = cli.parse([f"config={file}"], load, World())
  assert (config.algorithm, config.num_envs) == ("sac", 128)
  assert module.__file__ == toy.__file__


def test_the_config_of_a_run_repeats_it(tmp_path):
  train.main([TOY, "num_envs=8", "max_iterations=1", "ppo.lr=7e-4", f"run_dir={tmp_path / 'a'}"])
  train.main([f"config={tmp_path / 'a' / 'config.json'}", f"run_dir={tmp_path / 'b'}"])
  one, other = (json.loads((tmp_path / name / "config.json").read_text()) for name in ("a", "b"))
  assert one | {"run_dir": None} == other | {"run_dir": None}
  assert other["max_iterations"] == 1


def test_python_takes_files_too(files, tmp_path):
  settings = {"config": files, "max_iterations": 0, "run_dir": tmp_path / "run", "ppo": {"lr": 3e-4}}
  run = gpurobot.train(str(toy.__file__), **settings)
  assert chosen(run.config) == [64, 3e-4, [8, 8], 0.5, 0.25]


def test_nested_settings_become_flat():
  settings = {"a": {"b": np.float64(0.5), "c": {"d": [1]}}, "e.f": np.int64(3)}
  assert dict(config_files.flat(settings)) == {"a.b": 0.5, "a.c.d": [1], "e.f": 3}
  assert type(dict(config_files.flat(settings))["e.f"]) is int


def test_a_file_that_is_no_text_is_told_in_one_line(tmp_path):
  """Other mistakes are in `tests/mistakes/newcomer.py`."""
  file = tmp_path / "mine.yaml"
  file.write_bytes(b"\xff\xfe\x00")
  with pytest.raises(ConfigError, match=r"mine\.yaml is not YAML: .*$") as error:
    parse(f"config={file}")
  assert "\n" not in str(error.value)


@pytest.mark.parametrize("name", ["deep.yaml", "deep.json"])
def test_settings_nested_without_end_are_told(name, tmp_path):
  """YAML's reader overflows the stack of the process where Python's own limit does not stop it."""
  path = tmp_path / name
  path.write_text("a: " + "[" * 50_000 if name.endswith("yaml") else '{"a":' * 50_000)
  with pytest.raises(ConfigError, match=f"{name} is nested more than 100 levels deep"):
    config_files.read(str(path))
