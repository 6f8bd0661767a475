"""Mistakes in what is given for a checkpoint: the file is named, and what is wrong with it."""

import dataclasses
import json
import shutil
import sys
import warnings
from collections.abc import Callable
from pathlib import Path

import pytest
import torch

import tasks
import train
from gpurobot import evaluate, export, play, record, replay
from gpurobot.deploy import trained as trained_policy
from gpurobot.device.distributed import World
from gpurobot.run import checkpoint
from gpurobot.settings.config import ConfigError, to_dict
from gpurobot.shell import cli
from gpurobot.viewer.player import Player
from tests.mistakes.task_files import PENDULUM, SPEED
from tests.mistakes.told import SMALL, TOY, told

pytestmark = pytest.mark.usefixtures("keep_signal_handlers")


@pytest.fixture(scope="module")
def trained(tmp_path_factory) -> Path:
  """The checkpoint of a short training."""
  folder = tmp_path_factory.mktemp("trained")
  train.main([TOY, *SMALL, f"run_dir={folder}"])
  return folder / checkpoint.NAME


def saved(content: object) -> Callable[[Path, Path], None]:
  return lambda _, file: torch.save(content, file)


CHECKPOINTS: dict[str, tuple[Callable[[Path, Path], object], str]] = {
  "a text": (lambda _, file: file.write_text("weights"), "'<file>' is not a readable checkpoint"),
  "cut short": (
    lambda good, file: file.write_bytes(good.read_bytes()[:-100]),
    "'<file>' is not a readable checkpoint",
  ),
  "of another program": (saved({"weight": torch.ones(2)}), "'<file>' is not a checkpoint of gpurobot"),
  "older": (saved({"format": 1}), "'<file>' is a checkpoint of format 1"),
}


@pytest.mark.parametrize(("make", "message"), CHECKPOINTS.values(), ids=CHECKPOINTS)
def test_in_a_checkpoint(make, message, trained, tmp_path, capsys):
  file = tmp_path / "other.pt"
  make(trained, file)
  for program, words in (
    (train.main, [f"resume={file}"]),
    (train.main, [TOY, f"checkpoint={file}", f"run_dir={tmp_path / 'run'}"]),
    (evaluate.main, [f"checkpoint={file}"]),
  ):
    assert told(capsys, program, words).startswith(message.replace("<file>", str(file)))


def test_in_a_task_that_was_changed_or_moved_since(tmp_path, monkeypatch, capsys):
  monkeypatch.chdir(tmp_path)
  file = Path("mine.py")
  file.write_text(PENDULUM)
  train.main(["task=mine.py", *SMALL, "run_dir=run"])
  words = ["checkpoint=run", "episodes=1", "task=mine.py"]
  assert told(capsys, evaluate.main, [*words, "env.episode_stps=1"]).startswith("unknown key 'env.epis")
  file.rename("yours.py")
  assert told(capsys, evaluate.main, words) == f"there is no task file 'mine.py' in {tmp_path}"
  file.write_text(PENDULUM.replace(SPEED, f'{SPEED}, "more": angle'))
  monkeypatch.setattr("sys.modules", {k: v for k, v in sys.modules.items() if not k.startswith("task_file")})
  message = "'run' was trained with obs_dims={'policy': 3}, but the task now has {'policy': 4}: train "
  assert told(capsys, evaluate.main, words).startswith(message)


CALLS = {
  name: (program, words)
  for program, word in (
    (train.main, "resume=run"),
    (evaluate.main, "checkpoint=run"),
    (export.main, "checkpoint=run"),
    (play.main, "checkpoint=run"),
    (record.main, "checkpoint=run"),
    (replay.main, "file=run"),
  )
  for words in ([word], [word, "--help"])
  for name in [f"{program.__module__} {' '.join(words)}"]
  if name != "gpurobot.replay file=run --help"  # it says the same for every file
}


@pytest.fixture
def trap(tmp_path, monkeypatch) -> Callable[[str], Path]:
  """Return how to make run/ with a checkpoint of a task; that returns the file that its code writes."""
  monkeypatch.chdir(tmp_path)
  monkeypatch.syspath_prepend(tmp_path)

  def make(task: str) -> Path:
    content = {"config": {"task": task}, "learner": {}, "states": {}}
    checkpoint.write("run", content)
    Path("run", "diverged").mkdir()
    checkpoint.save(Path("run", "diverged", "000001-0.pt"), content)
    module = Path(task if task.endswith(".py") else task.replace(".", "/") + ".py")
    module.parent.mkdir(exist_ok=True)
    module.write_text(f"open({str(tmp_path / 'imported')!r}, 'w')\n")
    return tmp_path / "imported"

  return make


@pytest.mark.parametrize("task", ["mine.py", "installed.module"])
@pytest.mark.parametrize(("program", "words"), CALLS.values(), ids=CALLS)
def test_in_a_task_that_only_a_checkpoint_names(program, words, task, trap, capsys):
  imported = trap(task)
  message = f"'run' was trained on the task '{task}', which runs code: add task={task}"
  assert told(capsys, program, words) == message
  message = f"'run' was trained on the task '{task}', not on 'cartpole'"
  assert told(capsys, program, [*words, "task=cartpole"]) == message
  assert not imported.exists()


@pytest.mark.parametrize("task", ["run/mine.py", "run.package"])
@pytest.mark.parametrize(("program", "words"), CALLS.values(), ids=CALLS)
def test_in_a_task_that_came_with_its_checkpoint(program, words, task, trap, capsys):
  imported = trap(task)
  message = told(capsys, program, words)
  assert message.startswith("'run' came with the code of its task, '")
  assert message.endswith("which is not run: move it to another folder and write task=<its new path>")
  assert told(capsys, program, [*words, f"task={task}"]) == message
  assert not imported.exists()


@pytest.mark.parametrize(("program", "words"), [call for name, call in CALLS.items() if "replay" not in name])
def test_in_a_setting_that_names_code(program, words, tmp_path, monkeypatch, capsys):
  monkeypatch.chdir(tmp_path)
  config = {"task": "quadruped", "env.actuator_network": "run/motor.pt"}
  checkpoint.write("run", {"config": config, "learner": {}})
  message = "'run' has the setting env.actuator_network, a file with code that runs: add "
  assert told(capsys, program, words) == f"{message}env.actuator_network=run/motor.pt"


def test_a_setting_that_names_code_holds_if_it_is_given_too(tmp_path, monkeypatch):
  monkeypatch.chdir(tmp_path)
  config = {"task": "quadruped", "env.actuator_network": "motor.pt"}
  checkpoint.write("run", {"config": config, "learner": {}, "states": {}})
  given = "env.actuator_network=other.pt"
  settings, _ = cli.parse(["resume=run", given], tasks.load, World())
  assert settings.env.actuator_network == "other.pt"
  assert checkpoint.code_arguments(settings) == ["task=quadruped", given]
  policy = trained_policy.parse(trained_policy.PolicySettings(), ["checkpoint=run", given])
  assert policy.env.actuator_network == "other.pt"
  assert trained_policy.read("run", to_dict(policy))[0].env.actuator_network == "motor.pt"
  _, env, _ = replay.read("run/checkpoint.pt")
  assert env.actuator_network is None  # nothing is stepped


def test_a_task_file_may_have_moved_since(trained, tmp_path, capsys):
  copy = tmp_path / "toy.py"
  copy.write_bytes(Path(tasks.load(TOY.removeprefix("task=")).__file__).read_bytes())
  evaluate.main([f"checkpoint={trained}", f"task={copy}", "episodes=1"])
  assert capsys.readouterr().out.startswith("1 episode ")


ARMS = """
from dataclasses import dataclass

from tasks import base

PPO = {"hidden": [8], "horizon": 8, "minibatches": 1, "precision": "float32"}


@dataclass
class Config(base.Config):
  reward_height: float = base.option(1.0, "weight")


class Task(base.Task):
  robot = '''
    <mujoco>
      <worldbody>
        <body><joint name="left" axis="0 1 0"/><geom size="0.1" pos="0 0 -0.5" contype="0"/></body>
        <body><joint name="right" axis="0 1 0"/><geom size="0.1" pos="0 5 -0.5" contype="0"/></body>
      </worldbody>
      <actuator>
        <motor name="one" joint="left" ctrlrange="-1 1"/>
        <motor name="two" joint="right" ctrlrange="-1 1"/>
      </actuator>
    </mujoco>'''

  def reward(self):
    return {"height": -self.sim.qpos[:, 0].cos()}

  def observe(self):
    return {"policy": {"angle": self.sim.qpos, "speed": self.sim.qvel}}
"""
ANGLE, SPEEDS = '"angle": self.sim.qpos', '"speed": self.sim.qvel'
MOTORS = [f'<motor name="{name}" joint="{joint}" ctrlrange="-1 1"/>' for name, joint in
          (("one", "left"), ("two", "right"))]  # fmt: skip
UNDO = "undo the change in the task, its settings or its robot, or add changed=true if it is meant"
CHANGES: dict[str, tuple[list[tuple[str, str]], str]] = {
  "blocks exchanged": (
    [(f"{ANGLE}, {SPEEDS}", f"{SPEEDS}, {ANGLE}")],
    "'run' was trained with column 0 of 'policy' as 'angle', which is 'speed' now",
  ),
  "an actuator of another joint": (
    [('"two" joint="right"', '"two" joint="left"')],
    "'run' was trained with control 1 as 'two of joint right', which is 'two of joint left' now",
  ),
  "actuators in another order": (
    [(MOTORS[0], "first"), (MOTORS[1], MOTORS[0]), ("first", MOTORS[1])],
    "'run' was trained with action 0 as 'one', which is 'two' now",
  ),
  "another robot of the same size": (
    [('"left"', '"shoulder"'), ('"right"', '"elbow"')],
    "'run' was trained with joint 0 as 'left', which is 'shoulder' now",
  ),
}
LIGHTER = [('size="0.1" pos', 'size="0.1" mass="2" pos')]
DIFFERS = "the model of 'run' had another body_mass, body_inertia"
RESUMED = f"{DIFFERS}, and resume= needs the same: {UNDO.replace(', or', ', start a run by checkpoint=, or')}"
LOADS = {
  "evaluate": (evaluate.main, ["run", "episodes=1"]),
  "export": (export.main, ["run"]),
  "play": (play.main, ["run", "num_envs=2", "viewer=native"]),
  "record": (record.main, ["run", "seconds=0.1", "width=16", "height=16", "video=video.gif"]),
  "checkpoint": (train.main, [*SMALL, "checkpoint=run", "run_dir=new"]),
  "resume": (train.main, ["resume=run", "max_iterations=2", "run_dir=new"]),
  "teacher": (train.main, [*SMALL, "algorithm=distill", "teacher=run", "run_dir=new"]),
}


@pytest.fixture(scope="module")
def arms(tmp_path_factory) -> Path:
  """A folder with a task, and a run of it."""
  folder = tmp_path_factory.mktemp("arms")
  with pytest.MonkeyPatch.context() as patch:
    patch.chdir(folder)
    Path("mine.py").write_text(ARMS)
    train.main(["task=mine.py", *SMALL, "run_dir=run"])
  return folder


@pytest.fixture
def changed(arms, tmp_path, monkeypatch) -> Callable[[list[tuple[str, str]]], None]:
  """Return how to change the task of a run in the working directory."""
  shutil.copytree(arms, tmp_path, dirs_exist_ok=True)
  monkeypatch.chdir(tmp_path)
  monkeypatch.setattr(play, "play", lambda settings: trained_policy.load(settings, settings.num_envs))

  def change(pairs: list[tuple[str, str]]) -> None:
    text = ARMS
    for old, new in pairs:
      assert old in text
      text = text.replace(old, new)
    Path("mine.py").write_text(f"{text}# Bytecode of a file of the same size and second would be used.\n")
    for name in [name for name in sys.modules if name.startswith("task_file")]:
      del sys.modules[name]

  return change


FIRST_CHANGE, FIRST_LOAD = next(iter(CHANGES)), next(iter(LOADS))
MEANINGS = {*((change, FIRST_LOAD) for change in CHANGES), *((FIRST_CHANGE, load) for load in LOADS)}


@pytest.mark.parametrize(("change", "load"), sorted(MEANINGS))
def test_in_what_columns_and_joints_mean(change, load, changed, capsys):
  (pairs, message), (program, words) = CHANGES[change], LOADS[load]
  changed(pairs)
  assert told(capsys, program, ["task=mine.py", *words]) == f"{message}: {UNDO}"


@pytest.mark.parametrize("load", ["evaluate", "resume"])
def test_another_model_with_these_names_is_a_line_and_ends_only_a_resume(load, changed, capsys):
  program, words = LOADS[load]
  changed(LIGHTER)
  words = ["task=mine.py", *words]
  if load == "resume":
    assert told(capsys, program, words) == RESUMED
  else:
    assert warned(program, words) == [DIFFERS]


def warned(program: Callable[[list[str]], object], words: list[str]) -> list[str]:
  """Run a program; return its warnings of the run."""
  with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    program(words)
  return [str(one.message) for one in caught if "'run'" in str(one.message)]


@pytest.mark.parametrize("load", LOADS)
def test_a_changed_task_is_taken_if_it_is_meant(load, changed, capsys):
  program, words = LOADS[load]
  changed([*CHANGES["another robot of the same size"][0], *CHANGES["blocks exchanged"][0], *LIGHTER])
  assert warned(program, ["task=mine.py", *words, "changed=true"]) == []
  if load == "export":  # its weights are of the old columns
    facts = json.loads(Path("run", "export", "policy.json").read_text())
    assert [block["name"] for block in facts["observation"]["blocks"]] == ["angle", "speed"]
    assert facts["trained with"]["joint"] == ["left", "right"]
    assert [joint["name"] for joint in facts["joints"]] == ["shoulder", "elbow"]
  if load == "resume":  # what was meant then is not meant for ever
    changed([])
    message = "'new' was trained with column 0 of 'policy' as 'speed', which is 'angle' now"
    assert told(capsys, train.main, ["task=mine.py", "resume=new"]).startswith(message)


@pytest.mark.parametrize("load", ["evaluate", "resume"])
def test_an_older_checkpoint_fits_by_its_sizes(load, changed, capsys):
  program, words = LOADS[load]
  changed(CHANGES["blocks exchanged"][0])
  content = torch.load("run/checkpoint.pt", weights_only=True)
  del content["learner"]["names"]
  torch.save(content, "run/checkpoint.pt")
  line = "'run' is of an older gpurobot and names no actions and joints: their numbers are compared"
  assert warned(program, ["task=mine.py", *words]) == [line]
  content["obs_names"] = {"policy": ["angle"] * 2 + ["speed"] * 2}  # as checkpoints had it for a while
  torch.save(content, "run/checkpoint.pt")
  words = [word.replace("run_dir=new", "run_dir=again") for word in words]
  assert "0 of 'policy' as 'angle', which is 'speed' now" in told(capsys, program, ["task=mine.py", *words])


@pytest.mark.parametrize("load", ["evaluate", "resume"])
def test_a_task_that_is_as_it_was_is_no_mistake(load, changed):
  program, words = LOADS[load]
  changed([("mujoco>", "mujoco >"), ("class Task(", "# moved\nclass Task(")])
  assert warned(program, ["task=mine.py", *words]) == []
  if load == "evaluate":
    assert warned(program, ["task=mine.py", *words, "engine=mujoco"]) == []


def test_in_a_rival_and_in_other_policies_of_a_run(changed, capsys):
  """`play` loads them into the environments of the first."""
  changed(CHANGES["blocks exchanged"][0])
  train.main(["task=mine.py", *SMALL, "run_dir=new"])
  settings = trained_policy.PolicySettings(checkpoint="new", task="mine.py")
  found = trained_policy.load(settings, 2)
  message = "'run' was trained with column 0 of 'policy' as 'angle', which is 'speed' now"
  with pytest.raises(ConfigError, match=message):
    Player(found, "run")
  player = Player(found)
  with pytest.raises(ConfigError, match=message):
    player.load("run")
  Player(dataclasses.replace(found, config=dataclasses.replace(found.config, changed=True)), "run")
