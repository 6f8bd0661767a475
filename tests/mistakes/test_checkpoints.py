"""Mistakes in what is given for a checkpoint: the file is named, and what is wrong with it."""

import re
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
import torch

import tasks
import train
from gpurobot import cli, evaluate, export, play, record, replay
from gpurobot.config import to_dict
from gpurobot.deploy import trained as trained_policy
from gpurobot.device.distributed import World
from gpurobot.run import checkpoint
from tests.mistakes.task_files import PENDULUM, SPEED
from tests.mistakes.told import SMALL, TOY, told

pytestmark = pytest.mark.usefixtures("keep_signal_handlers")


@pytest.fixture(scope="module")
def trained(tmp_path_factory) -> Path:
  """The checkpoint of a short training."""
  folder = tmp_path_factory.mktemp("trained")
  train.main([TOY, *SMALL, f"run_dir={folder}"])
  return folder / checkpoint.NAME


class Code:
  """What a file that loads without a question could do."""

  def __reduce__(self):
    return print, ("run",)


def saved(content: object) -> Callable[[Path, Path], None]:
  return lambda _, file: torch.save(content, file)


CHECKPOINTS: dict[str, tuple[Callable[[Path, Path], object], str]] = {
  "empty": (lambda _, file: file.write_bytes(b""), "'<file>' is not a readable checkpoint"),
  "a text": (lambda _, file: file.write_text("weights"), "'<file>' is not a readable checkpoint"),
  "cut short": (
    lambda good, file: file.write_bytes(good.read_bytes()[:-100]),
    "'<file>' is not a readable checkpoint",
  ),
  "of another program": (saved({"weight": torch.ones(2)}), "'<file>' is not a checkpoint of gpurobot"),
  "with code": (
    saved({"format": 2, "code": Code()}),
    "'<file>' is not a checkpoint of gpurobot: it holds more than numbers and strings",
  ),
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


@pytest.mark.parametrize("word", ["ppo.hidden=[4]", "ppo.recurrent=gru", "ppo.critic=twohot"])
def test_in_what_a_checkpoint_is_for(word, trained, tmp_path, capsys):
  words = [TOY, *SMALL, word, f"checkpoint={trained}", f"run_dir={tmp_path}"]
  assert re.match(f"'{trained}' does not fit this training: ", told(capsys, train.main, words))


def test_in_a_task_that_was_changed_or_moved_since(tmp_path, monkeypatch, capsys):
  monkeypatch.chdir(tmp_path)
  file = Path("mine.py")
  file.write_text(PENDULUM)
  train.main(["task=mine.py", *SMALL, "run_dir=run"])
  words = ["checkpoint=run", "episodes=1", "task=mine.py"]
  assert told(capsys, evaluate.main, [*words, "env.episode_stps=1"]).startswith(
    "unknown key 'env.episode_stps'"
  )
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
  message = f"'run' was trained on the task '{task}', whose code runs: add task={task}"
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
  message = "'run' has the setting env.actuator_network, a file whose code runs: add "
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
