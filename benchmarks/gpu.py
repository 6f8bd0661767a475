"""Everything that asks for a GPU, the most telling first: python -m benchmarks.gpu [key=value ...].

Checks, speeds, memory, learning: every step is a process of its own with a limit of time; its output goes
into a file of the folder. Whatever becomes of a step, the next one follows. The status is the number of those
that failed.
"""

import contextlib
import dataclasses
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from gpurobot.config import ConfigError, assign, leaves, option, pairs

ROOT = Path(__file__).parents[1]
PATIENCE = 20  # for an interrupted step [s]
TOLD = 12  # lines of a step's output, its last
WORKERS = "5"  # for tests: CUDA keeps up to 10 GB for the stacks of a kernel's threads, in each process
ANT = ["task=ant", "num_envs=16384"]
# Kernels that do not depend on each other in one launch, which torch's compiler does not do by itself.
COMBINED = """
import sys
from torch._inductor import config
from benchmarks import iteration
config.combo_kernels = True
iteration.run(sys.argv[1:])
"""


@dataclasses.dataclass(frozen=True)
class Step:
  """Words after the Python interpreter, and how long they may take [s]."""

  words: Sequence[str]
  seconds: float
  before: Sequence[str] = ()  # a program that runs the interpreter


def learn(task: str, seconds: float, *words: str) -> Step:
  """Return a training of a task by its own settings."""
  own = [f"task={task}", f"max_seconds={seconds:g}", f"run_dir=runs/gpu/{task}"]
  return Step(["train.py", *own, *words], seconds + 120)


def tests(*words: str) -> Step:
  """Return tests by pytest."""
  return Step(["-m", "pytest", "-q", "-p", "no:cacheprovider", *words], 540)


STEPS = {
  "graphs": tests("tests/gpu"),
  "iteration": Step(["-m", "benchmarks.iteration", *ANT], 240),
  "iteration_without_compiler": Step(["-m", "benchmarks.iteration", *ANT, "compile=off"], 120),
  "iteration_combined": Step(["-c", COMBINED, *ANT], 240),
  "engine": Step(["-m", "benchmarks.gpu_engine"], 480),
  "learn_ant": learn("ant", 20, "num_envs=16384", "profile=true"),
  "test_tasks": tests("-n", WORKERS, "--dist", "loadgroup", "--device=cuda:0", "tests/tasks"),
  "test_physics": tests("-n", WORKERS, "--dist", "loadgroup", "--device=cuda:0", "tests/physics"),
  "environments": Step(["-m", "benchmarks.environments"], 300),
  "million": Step(["-m", "benchmarks.iteration", "task=ant", "num_envs=1048576", "ppo.horizon=4"], 240),
  "learn_humanoid": learn("humanoid", 75),
  "learn_quadruped_rough": learn("quadruped_rough", 200),
  "learn_cube_stack": learn("cube_stack", 320),
  "learn_hand_cube": learn("hand_cube", 320),
  "sanitizer": Step(
    ["-m", "pytest", "-q", "-p", "no:cacheprovider", "--device=cuda:0", "tests/tasks", "-k", "stay_finite"],
    540,
    before=["compute-sanitizer", "--error-exitcode", "1"],
  ),
}


@dataclasses.dataclass
class Settings:
  """Settings of a visit to a GPU."""

  steps: list[str] = option([*STEPS], "which, in this order")  # noqa: RUF009 (a field)
  folder: str = option("runs/gpu", "where their output goes")


def run_step(name: str, step: Step, folder: Path) -> str:
  """Run a step and return what became of it: done, its status, or too slow."""
  if step.before and not shutil.which(step.before[0]):
    return f"left out: there is no {step.before[0]}"
  with (folder / f"{name}.txt").open("w") as output:
    command = [*step.before, sys.executable, *step.words]
    process = subprocess.Popen(
      command, cwd=ROOT, stdout=output, stderr=subprocess.STDOUT, start_new_session=True
    )
    try:
      status = process.wait(step.seconds)
    except subprocess.TimeoutExpired:
      end(process)
      return f"failed: not done after {step.seconds:g} s"
  return "done" if status == 0 else f"failed: status {status}"


def end(process: subprocess.Popen[bytes]) -> None:
  """Interrupt a process and its children, which may tell how far they came, then kill what is left."""
  for number in (signal.SIGINT, signal.SIGKILL):
    with contextlib.suppress(subprocess.TimeoutExpired, ProcessLookupError):
      os.killpg(process.pid, number)
      process.wait(PATIENCE)


def run(words: Sequence[str] = ()) -> int:
  """Run the steps; return how many failed."""
  settings = assign(Settings(), pairs([*words], leaves(Settings())))
  for name in settings.steps:
    if name not in STEPS:
      raise ConfigError(f"steps: there is no '{name}'; there are {', '.join(STEPS)}")
  folder, failed = Path(settings.folder), 0
  folder.mkdir(parents=True, exist_ok=True)
  for name in settings.steps:
    begin = time.monotonic()
    outcome = run_step(name, STEPS[name], folder)
    failed += outcome.startswith("failed")
    print(f"== {name}: {outcome}, {time.monotonic() - begin:.0f} s", flush=True)
    file = folder / f"{name}.txt"
    if file.exists():
      print(*file.read_text(errors="replace").splitlines()[-TOLD:], sep=os.linesep, flush=True)
  return failed


if __name__ == "__main__":
  try:
    sys.exit(run(sys.argv[1:]))
  except ConfigError as error:
    sys.exit(f"error: {error}")
