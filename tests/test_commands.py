"""Every command of the first pages is run, as it stands or by a stand-in of its program; others are read.

A stand-in does all that reads the words of a command, and a little of the work: training is one iteration of
64 environments, a program that waits for people, or draws, prints the help that its words lead to.
"""

import contextlib
import functools
import importlib.util
import os
import re
import runpy
import shlex
import shutil
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tensorboard.program import TensorBoard
from torch.distributed import run as torchrun

import tasks
import train
from benchmarks import cases
from benchmarks.__main__ import RUNNERS
from benchmarks.parity import survey
from gpurobot import evaluate, extras, plot, sweep
from gpurobot.device.distributed import World
from gpurobot.shell import cli
from gpurobot.shell.command import main as gpurobot
from gpurobot.shell.programs import HELP, PROGRAMS
from physics.parity import __main__ as parity
from tasks import humanoid_amp
from tasks.motion import transitions
from tests.test_docs import PAGES, README, python_blocks

ROOT = Path(__file__).parents[1]
FRONT = {"README.md", "docs/index.md"}  # their commands are run
COMMAND = re.compile(r"(?:\w+=\S+ )*(?:\.venv/bin/)?(?:gpurobot|make|pip|python|tensorboard|torchrun) .+")
# What stands for something in a command, and a thing of that kind.
PLACEHOLDERS = {
  "<run folder>": "trained",
  "<run folder or .pt file>": "trained/checkpoint.pt",
  "<export folder>": "export",
  "<log>": "log.npz",
  "<folder>": "run",
  "<task>": "cartpole",
  "<program>": "train",
  "<robot file>": "assets/quadruped/robot.xml",
  "<motion file>": "walk",
  "<arm file>": "assets/arm/robot.xml",
  "<steps>": "1000000",
  "<time>": "60",
  "=my_task.py": "=pendulum.py",
  "<file>": "assets/quadruped/robot.xml",
  "...": "",
}
pytestmark = pytest.mark.xdist_group("commands")  # one process makes the folder, and trains what is repeated
TASK = "gym/InvertedPendulum-v5"  # quick, and known to every engine


def spans(page: str) -> Iterator[str]:
  """Yield the lines of code blocks that are no Python, and what stands between backticks in the text."""
  fence, prose = None, []
  for line in page.replace("\\\n", " ").splitlines():
    if line.strip().startswith("```"):
      fence = line.strip().removeprefix("```") if fence is None else None
    elif fence is None:
      prose.append(line)
    elif fence != "python":
      yield line.strip()
  yield from re.findall(r"`([^`]+)`", "\n".join(prose))


def commands() -> dict[str, str]:
  """Return each command and a page that has it."""
  found: dict[str, str] = {}
  for page, text in PAGES.items():
    for span in spans(text):
      command = " ".join(re.sub(r"\s#\s.*", "", span).split())
      if COMMAND.fullmatch(command) and "<name>" not in command:
        found.setdefault(command.replace(".venv/bin/", ""), str(page))
  return found


FOUND = commands()
FIRST = [own for own, page in FOUND.items() if page in FRONT]
# Runs that lessons train, from which their later commands begin.
RUNS = {found for text in PAGES.values() for found in re.findall(r"run_dir=(runs/\S+)", text)}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
  """A folder with all that the commands name: a trained policy, runs to draw, the README's task, robots."""
  folder = tmp_path_factory.mktemp("commands")
  for name in ("assets", "examples", "train.py"):
    (folder / name).symlink_to(ROOT / name)
  train.main(
    [f"task={TASK}", f"run_dir={folder / 'trained'}", "max_iterations=1", "num_envs=64", "threads=1"]
  )
  for name in ("cartpole", "ant", "a", "b", "other"):
    shutil.copytree(folder / "trained", folder / "runs" / name / "run")
  (folder / "robot.xml").symlink_to(ROOT / "assets" / "ant" / "robot.xml")
  (folder / "folder").mkdir()
  (folder / "folder" / "robot.xml").symlink_to(ROOT / "assets" / "ant" / "robot.xml")
  humanoid = humanoid_amp.Task.make_model(humanoid_amp.Config())
  transitions.write(folder / "walks.npz", transitions.walks(humanoid, (0.5, 1.0), 0.3, 1 / 30))
  (folder / "pendulum.py").write_text(python_blocks(README)[0])
  (folder / "my_policy.py").write_text(python_blocks(PAGES[Path("docs/training.md")])[0])
  own = {
    "pendulum": ["task=pendulum.py"],
    "residual": [f"task={TASK}", "ppo.network=my_policy.py:Residual"],
  }
  with contextlib.chdir(folder):
    for name, words in own.items():
      train.main([*words, f"run_dir=runs/{name}/run", "max_iterations=1", "num_envs=64", "threads=1"])
  return folder


def run_training(words: list[str]) -> None:
  if {*HELP} & {*words}:
    with pytest.raises(SystemExit, match="0"):
      train.main(words)
  elif any(word.startswith(("log.wandb=", "log.mlflow=")) for word in words):  # no server is there
    with pytest.MonkeyPatch.context() as patch:
      patch.setattr(extras, "check", lambda _: None)
      cli.parse(words, tasks.load, World())
  else:
    train_briefly(*words)


@functools.cache  # on one rank all numbers of ranks are the same
def train_briefly(*words: str) -> None:
  brief = [*words, "max_iterations=1", "threads=1"]
  if not any(word.startswith("resume=") for word in words):
    brief += ["num_envs=64", f"run_dir={tempfile.mkdtemp(dir='.')}"]
  assert train.main(brief) == 0


def run_make(words: list[str]) -> None:
  environment = {key: value for key, value in os.environ.items() if not key.startswith("MAKE")}
  command = ["make", "--dry-run", "--no-print-directory", "-C", str(ROOT), *words]
  done = subprocess.run(command, env=environment, check=True, capture_output=True, text=True)
  if words[0] == "train":
    run_training(done.stdout.splitlines()[-1].split()[2:])


def run_torchrun(words: list[str]) -> None:
  options = torchrun.parse_args(words)
  assert options.training_script == "train.py"
  run_training(options.training_script_args)


def run_evaluation(words: list[str]) -> None:
  named = any("=" not in word or word.startswith("checkpoint=") for word in words)
  policy = [] if named else ["checkpoint=trained"]
  evaluate.main([*words, *policy, "episodes=2"])


def run_sweep(words: list[str]) -> None:
  if {*HELP} & {*words}:
    sweep.main(words)
  else:
    sweep.plan(words)


def run_parity(words: list[str]) -> None:
  with pytest.MonkeyPatch.context() as patch:
    patch.setattr(parity, "compare", lambda *_: [])
    assert parity.main(words) == 0


def run_survey(words: list[str]) -> None:
  with pytest.MonkeyPatch.context() as patch:
    patch.setattr(survey, "survey", lambda *_: [])
    assert survey.main(words) == 0


def run_benchmark(module: str, words: list[str]) -> None:
  """Look whether there is such a benchmark, and a case of that name."""
  assert importlib.util.find_spec(module)
  known = RUNNERS if module == "benchmarks" else ["picture", *(curve.task for curve in cases.CURVES)]
  assert {word for word in words if "=" not in word} <= set(known)


def run_program(module: str, words: list[str]) -> None:
  """Run a program as `python -m` does."""
  with pytest.MonkeyPatch.context() as patch:
    patch.setattr(sys, "argv", [module, *words])
    runpy.run_module(module, run_name="__main__")


def run_python(words: list[str]) -> None:
  """Run a file or module by its stand-in, if it has one; of others the help that the words lead to."""
  if words[0] == "-c":
    return exec(words[1], {})
  if words[0] != "-m":
    assert Path(words[0]).exists()
    return run_training(words[1:]) if words[0] == "train.py" else None
  module, *rest = words[1:]
  if module in MODULES:
    return MODULES[module](rest)
  if module.startswith("benchmarks"):
    return run_benchmark(module, rest)
  return run_program(module, [*rest, "--help"])


def run_gpurobot(words: list[str]) -> None:
  """Run the stand-in of a program that the command names, or what the command itself says."""
  if words and words[0] in PROGRAMS:
    run_python(["-m", PROGRAMS[words[0]][0], *words[1:]])
  else:
    gpurobot(words)


def run_tests(words: list[str]) -> None:
  """Look whether there are such tests, in this process, which has imported most of them.

  One file stands for a folder. The plugin left out would look through all objects of this process five times.
  """
  options = ["--collect-only", "--quiet", "--capture=no", "-p", "no:unraisableexception"]
  with contextlib.chdir(ROOT):
    words = [str(next(Path(word).rglob("test_*.py"))) if Path(word).is_dir() else word for word in words]
    assert pytest.main([*options, *words]) == 0


def run_pip(words: list[str]) -> None:
  """Look whether the extras are there that are asked for."""
  extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
  asked = re.findall(r"\[([\w,]+)\]", " ".join(words))
  assert {extra for group in asked for extra in group.split(",")} <= set(extras)


STAND_INS: dict[str, Callable[[list[str]], object]] = {
  "gpurobot": run_gpurobot,
  "make": run_make,
  "pip": run_pip,
  "python": run_python,
  "tensorboard": lambda words: TensorBoard().configure(["tensorboard", *words]),
  "torchrun": run_torchrun,
}
MODULES: dict[str, Callable[[list[str]], object]] = {
  "benchmarks.parity.survey": run_survey,
  "gpurobot": run_gpurobot,
  "gpurobot.evaluate": run_evaluation,
  "gpurobot.plot": plot.main,
  "gpurobot.sweep": run_sweep,
  "physics.parity": run_parity,
  "pytest": run_tests,
  "tasks": lambda words: run_program("tasks", words),
  "train": run_training,
}


def run(command: str) -> None:
  for placeholder, thing in PLACEHOLDERS.items():
    command = command.replace(placeholder, thing)
  words = shlex.split(command)
  while "=" in words[0]:  # a variable of the environment
    words.pop(0)
  STAND_INS[words[0]](words[1:])


@pytest.mark.usefixtures("keep_signal_handlers")
@pytest.mark.parametrize("command", FIRST)
def test_command_of_the_first_pages_runs(command: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
  monkeypatch.chdir(folder)
  run(command)


@pytest.mark.usefixtures("keep_signal_handlers")
def test_every_other_command_has_words_that_its_program_knows(
  folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
  monkeypatch.chdir(folder)
  monkeypatch.setitem(globals(), "train_briefly", lambda *words: cli.parse([*words], tasks.load, World()))
  monkeypatch.setattr(evaluate, "show", lambda _: None)
  for trained in RUNS - {"runs/six"}:
    shutil.copytree("trained", trained, dirs_exist_ok=True)
  # A run that is resumed has the settings of its task.
  train.main(["task=motion_track", "run_dir=runs/six", "max_iterations=0", "num_envs=64", "threads=1"])
  wrong = {}
  for command in FOUND.keys() - {*FIRST}:
    try:  # what stands for a run of the lessons lacks the settings of its task
      run(command if "train" in command else re.sub(r" (env\.|task=examples/|network=)\S+", "", command))
    except (Exception, SystemExit) as error:
      wrong[command] = error
  assert wrong == {}


def test_every_page_with_a_program_is_looked_at() -> None:
  assert {*FRONT, "docs/distributed.md", "docs/motions.md"} <= set(FOUND.values())
