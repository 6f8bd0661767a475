"""Files that one was given: their text commands no terminal, and none ends in a traceback or a wait."""

import os
import threading
import time
from pathlib import Path

import pytest
import torch
from rich.table import Table

import train
from gpurobot import describe, evaluate, sweep
from gpurobot.run import checkpoint
from gpurobot.run.interrupt import Interrupt
from gpurobot.shell import cli
from tests.mistakes.told import SMALL, TOY, told

pytestmark = pytest.mark.usefixtures("keep_signal_handlers")
ROBOT = """<mujoco><worldbody><geom type="plane" size="1 1 1"/>{}<body name="{}" pos="0 0 1"><freejoint/>
<geom size=".1"/><body><joint/><geom pos="0 0 1" size=".1"/></body></body></worldbody></mujoco>"""


def test_the_name_of_a_task_is_told_without_its_escapes(capsys, tmp_path):
  path = tmp_path / "policy.pt"
  torch.save({"config": {"task": "\x1b]0;mine\x07\x1b[2J\x9b\u202e.py"}, "learner": {}, "version": 1}, path)
  line = told(capsys, evaluate.main, [f"checkpoint={path}"])
  assert line.isprintable()


def test_the_names_of_a_robot_are_told_without_their_escapes(capsys, tmp_path):
  (tmp_path / "robot.xml").write_text(ROBOT.format("", "a&#x9b;2Jb&#x202e;"))
  assert "a\\x9b2Jb\\u202e" in told(capsys, describe.main, [str(tmp_path / "robot.xml")])


def test_programs_print_no_escapes(capsys):
  cli.start(describe.Description(), "program", [], lambda _: print("a\x1b[2Jb\tä\n\u2066"))  # noqa: T201
  assert capsys.readouterr().out == "a\\x1b[2Jb\tä\n\\u2066\n"


def test_trainings_and_sweeps_print_no_escapes(capsys, tmp_path):
  folder = tmp_path / "\x1b]0;mine\x07\x1b[2J"
  train.main([TOY, *SMALL, f"run_dir={folder}"])
  table = Table("setting")
  table.add_row(str(folder))
  for shown in (str(folder), table):
    sweep.open_console(Interrupt()).print(shown, soft_wrap=True)
  printed = capsys.readouterr().out
  assert printed.count("\\x1b]0;mine\\x1b[2J: ") == 1
  assert {*printed} & {"\x1b", "\x07"} == set()


def test_the_help_of_a_checkpoint_prints_no_escapes(capsys, tmp_path):
  train.main([TOY, *SMALL, f"run_dir={tmp_path}", "log.wandb=null"])
  content = checkpoint.read(tmp_path)
  checkpoint.write(tmp_path, content | {"config": content["config"] | {"device": "\x1b[2J\ud800"}})
  capsys.readouterr()
  with pytest.raises(SystemExit):
    train.main([TOY, f"resume={tmp_path}", "--help"])
  assert "device=\\x1b[2J\\ud800 " in capsys.readouterr().out


@pytest.mark.parametrize(
  ("content", "says"),
  [
    (b"[" * 5000 + b"]" * 5000, "is nested more than 100 levels deep"),
    (b"seed: 1" + b"0" * 5000, "is not YAML: Exceeds the limit"),
    (b"seed: 0x\xff", "is not YAML: "),
  ],
  ids=range(3),
)
def test_a_config_that_no_one_would_write_is_named(capsys, tmp_path, content, says):
  (tmp_path / "my.yaml").write_bytes(content)
  line = told(capsys, train.main, [f"config={tmp_path / 'my.yaml'}", *SMALL])
  assert line.startswith(f"config={tmp_path / 'my.yaml'} {says}")


def test_a_config_that_is_a_pipe_is_waited_for_and_said(capfd, tmp_path):
  os.mkfifo(tmp_path / "pipe")
  text = f"{TOY.replace('=', ': ')}\nrun_dir: {tmp_path / 'run'}\n"

  def write():
    time.sleep(0.5)
    (tmp_path / "pipe").write_text(text)

  thread = threading.Thread(target=write)
  thread.start()
  train.main([f"config={tmp_path / 'pipe'}", *SMALL])
  thread.join()
  assert f"config={tmp_path / 'pipe'} is a pipe: it is read once another" in capfd.readouterr().err


def test_a_config_that_is_a_device_is_refused(capsys):
  line = told(capsys, train.main, ["config=/dev/zero"])
  assert line == "config=/dev/zero is no file: write config=<file>"


@pytest.mark.parametrize(
  ("part", "says"),
  [
    ('<replicate count="1000000000" offset="1 0 0"/>', "replicate: 1,000,000,000 copies"),
    ('<replicate\n offset="1 0 0" count = \'500\'>' * 3 + "</replicate>" * 3, "replicate: 250,000 copies"),
    ('<geom size=".1"/>' * 20_000, "20,003 geoms: at most 20,000; take a mesh or a height field"),
  ],
  ids=("one", "nested", "geoms"),
)  # fmt: skip
def test_a_robot_larger_than_what_can_be_built_is_refused_at_once(capsys, tmp_path, part, says):
  (tmp_path / "robot.xml").write_text(ROBOT.format(part, "trunk"))
  assert says in told(capsys, describe.main, [str(tmp_path / "robot.xml")])


def test_a_height_field_larger_than_what_can_be_built_is_refused_at_once(capsys, tmp_path):
  field = '<mujoco><asset><hfield name="h" ncol="30000" nrow="30000" size="1 1 1 1"/></asset>'
  (tmp_path / "robot.xml").write_text(ROBOT.format("", "trunk").replace("<mujoco>", field))
  line = told(capsys, describe.main, [str(tmp_path / "robot.xml")])
  assert "hfield: 30000 x 30000 heights are 900,000,000: at most 100,000,000" in line


def test_a_large_sweep_says_that_it_is_checked_and_a_larger_one_is_refused(capsys, tmp_path):
  seeds = f"seed={','.join(map(str, range(101)))}"
  settings, space = sweep.read([TOY, seeds, "max_iterations=1", f"folder={tmp_path}"])
  assert len(sweep.make_trials(settings, space)) == 101
  assert capsys.readouterr().out == "101 runs: checking their settings\n"
  line = told(capsys, sweep.main, [TOY, seeds, f"num_envs={','.join(map(str, range(1, 101)))}"])
  assert line == "a sweep of 10,100 runs: at most 10,000; give fewer values"


@pytest.mark.parametrize(
  "words",
  [
    ["task=/nowhere/mine.py"],
    ["task=walk", "env.robot=/nowhere/mine.xml"],
    ["task=walk", "env.robot=/nowhere/mine.urdf"],
    ["task=cartpole", "ppo.network=/nowhere/mine.py:Body"],
  ],
)
def test_a_file_that_is_not_there_is_told_with_its_own_folder(capsys, words):
  line = told(capsys, train.main, [*words, *SMALL])
  assert "/nowhere" in line
  assert str(Path.cwd()) not in line
