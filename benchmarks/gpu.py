"""GPU measurements and tests in steps: python -m benchmarks.gpu step=<step> folder=<folder>.

Without a step, the program lists all steps, the most informative first. A step consists of a few pieces, each
a separate process. It ends within 500 s: output goes to <folder>/<step>.txt as it appears, and the same
command continues with the remaining pieces. All processes of a step end with it, even if it is killed. The
exit status is the number of pieces that failed; delete the output file to repeat them.
"""

import contextlib
import dataclasses
import enum
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import IO

from benchmarks.cases import ISAAC_ANT
from gpurobot.settings.config import ConfigError, assign, leaves, option, pairs

ROOT = Path(__file__).parents[1]
SECONDS = 480.0  # time limit of a step [s]; an interrupted piece gets PATIENCE in addition
PATIENCE = 10.0  # time for an interrupted piece to end [s]
GLANCE = 0.2  # polling interval of the output of a piece [s]
WORKERS = "5"  # test processes; in each, CUDA reserves up to 10 GB for the stacks of kernel threads
ANT = [*ISAAC_ANT, "num_envs=16384"]
# Combines independent kernels in one launch, which torch's compiler does not do by default.
COMBINED = """
import sys
from torch._inductor import config
from benchmarks import iteration
config.combo_kernels = True
iteration.run(sys.argv[1:])
"""
# Kills a process group when its standard input closes, which happens however the parent process dies.
GUARD = "import os, signal, sys; sys.stdin.read(); os.killpg(int(sys.argv[1]), signal.SIGKILL)"


@dataclasses.dataclass(frozen=True)
class Step:
  """Step of the program: a description, an estimated duration, and pieces to run."""

  description: str
  minutes: float  # estimated duration
  pieces: Mapping[str, Sequence[str]]  # arguments of the Python interpreter, by name
  before: Sequence[str] = ()  # command that runs the interpreter, such as a profiler


def tests(*words: str) -> list[str]:
  """Return the arguments of a pytest run on a GPU."""
  return ["-m", "pytest", "-q", "-p", "no:cacheprovider", "--device=cuda:0", *words]


def parallel(*words: str) -> list[str]:
  """Return the arguments of a pytest run on a GPU in several processes."""
  return tests("-n", WORKERS, "--dist", "loadgroup", *words)


def learn(task: str, seconds: float, *words: str) -> list[str]:
  """Return the arguments of a training of a task with its own settings."""
  return ["train.py", f"task={task}", f"max_seconds={seconds:g}", f"run_dir=runs/gpu/{task}", *words]


def kernels(*words: str) -> dict[str, list[str]]:
  """Return the arguments of physics measurements, by robot."""
  named = ("ant", "humanoid_heap", "quadruped_on_rough_ground", "hand_holding_cube")
  return {name: ["-m", "benchmarks.visit", "part=kernels", f"cases=[{name}]", *words] for name in named}


NSIGHT = ("SpeedOfLight", "WarpStateStats", "MemoryWorkloadAnalysis", "MemoryWorkloadAnalysis_Tables")
STEPS = {
  "graphs": Step(
    "tests of CUDA graphs: each part of an iteration is recorded, never synchronises, agrees with a CPU",
    6,
    {
      "plain": tests("tests/gpu", "-k", "not compiled"),
      "compiled": tests("tests/gpu", "-k", "compiled"),
      "clock": tests("tests/gpurobot/device/test_clock.py"),
    },
  ),
  "iteration": Step(
    "iteration of 16,384 Ants: speed, kernels, memory; without the compiler; with combined kernels",
    6,
    {
      "compiled": ["-m", "benchmarks.iteration", *ANT],
      "plain": ["-m", "benchmarks.iteration", *ANT, "compile=off"],
      "joined": ["-c", COMBINED, *ANT],
    },
  ),
  "kernels": Step("physics only, 4,096 to 1,048,576 environments", 1, kernels()),
  "in_step": Step(
    "physics only, in larger blocks, with warps that pass the code together or each by itself",
    2,
    {
      f"{name}_{block}{'' if together else '_apart'}": kernels(
        f"block={block}", f"in_step={str(together).lower()}", "num_envs=[16384,65536]"
      )[name]
      for name in ("ant", "quadruped_on_rough_ground")
      for block, together in ((64, True), (128, True), (256, True), (128, False))
    },
  ),
  "unrolled": Step("physics only, with unrolled loops", 1, kernels("unroll=true")),
  "nsight": Step(
    "stalls in the physics of Ant and the quadruped: warp states, memory tables",
    3,
    {
      name: [*kernels()[name], "num_envs=[16384]", "profiled=true"]
      for name in ("ant", "quadruped_on_rough_ground")
    },
    before=[
      *("ncu", "--profile-from-start", "off", "--clock-control", "none"),
      *(word for section in NSIGHT for word in ("--section", section)),
    ],
  ),
  "engine": Step(
    "physics compared with mujoco_warp",
    8,
    {
      name: ["-m", "benchmarks.gpu_engine", f"cases=[{name}]"]
      for name in ("ant", "humanoid_heap", "arm_and_cube_on_table")
    },
  ),
  "million": Step(
    "training of a million Ants",
    3,
    {"million": ["-m", "benchmarks.iteration", *ISAAC_ANT, "num_envs=1048576", "ppo.horizon=4"]},
  ),
  "learn": Step(
    "trainings with the settings of each task, Ant with a profile",
    8,
    {
      "ant": learn("ant", 20, "num_envs=16384", "profile=true"),
      "humanoid": learn("humanoid", 75),
      "quadruped_rough": learn("quadruped_rough", 180),
    },
  ),
  "learn_hands": Step(
    "trainings of manipulation tasks",
    8,
    {"cube_stack": learn("cube_stack", 180), "hand_cube": learn("hand_cube", 180)},
  ),
  "environments": Step(
    "memory per environment of each task", 5, {"environments": ["-m", "benchmarks.environments"]}
  ),
  "test_tasks": Step(
    "tests of all tasks",
    8,
    {
      "gym": parallel("tests/tasks/gym"),
      "all": parallel("tests/tasks/test_all.py"),
      "each": parallel("tests/tasks", "--ignore=tests/tasks/gym", "--ignore=tests/tasks/test_all.py"),
    },
  ),
  "test_physics": Step(
    "tests of the physics against MuJoCo C",
    8,
    {
      "parity": parallel("tests/physics/test_parity.py", "tests/physics/vary/test_vary.py"),
      "parts": parallel(*(f"tests/physics/{name}" for name in ("collision", "parity", "sensor"))),
      "rest": parallel(
        "tests/physics",
        *(f"--ignore=tests/physics/{name}" for name in ("collision", "parity", "sensor")),
        *(f"--ignore=tests/physics/{name}.py" for name in ("test_parity", "vary/test_vary")),
      ),
    },
  ),
  "fetch": Step(
    "time per instruction over the code size", 2, {"fetch": ["-m", "benchmarks.visit", "part=fetch"]}
  ),
  "sanitizer": Step(
    "memory errors in a short run of each task",
    8,
    {"memcheck": tests("tests/tasks/test_all.py", "-k", "stay_finite")},
    before=["compute-sanitizer", "--error-exitcode", "1"],
  ),
}


@dataclasses.dataclass
class Settings:
  """Settings of the program."""

  step: str = option("", f"step to run: {', '.join(STEPS)}; empty: list them")
  folder: str = option("runs/gpu", "folder of the output files, which also record the finished pieces")


class Outcome(enum.StrEnum):
  """Outcome of a piece, written to the last line of its output."""

  done = enum.auto()
  failed = enum.auto()
  cut = enum.auto()  # interrupted at the time limit of the step


@contextlib.contextmanager
def group(command: Sequence[str], output: IO[str]) -> Iterator[subprocess.Popen[bytes]]:
  """Run a command in a process group that is killed at the end of the block, or if this process dies."""
  process = subprocess.Popen(
    command,
    cwd=ROOT,
    env=os.environ | {"PYTHONUNBUFFERED": "1"},
    stdout=output,
    stderr=subprocess.STDOUT,
    process_group=0,
  )
  guard = subprocess.Popen(
    [sys.executable, "-c", GUARD, str(process.pid)],
    stdin=subprocess.PIPE,
    stderr=subprocess.DEVNULL,  # hides the error if the group has already ended
    process_group=0,
  )
  try:
    yield process
  finally:
    guard.communicate()
    process.wait()


def interrupt(process: subprocess.Popen[bytes]) -> None:
  """Interrupt a process group and wait up to PATIENCE, so that it can print its results."""
  with contextlib.suppress(ProcessLookupError):
    os.killpg(process.pid, signal.SIGINT)
    with contextlib.suppress(subprocess.TimeoutExpired):
      process.wait(PATIENCE)


def run_piece(command: Sequence[str], output: Path, seconds: float) -> Outcome:
  """Run a command for at most `seconds`; append its output to a file and print it as it appears."""
  end = time.monotonic() + seconds
  with output.open("a") as file, output.open(errors="replace") as shown:
    shown.seek(0, os.SEEK_END)
    with group(command, file) as process:
      while process.poll() is None and time.monotonic() < end:
        time.sleep(GLANCE)
        print(shown.read(), end="", flush=True)
      if late := process.poll() is None:
        interrupt(process)
    print(shown.read(), end="", flush=True)
  return Outcome.cut if late else Outcome.failed if process.returncode else Outcome.done


def finished(output: Path) -> list[str]:
  """Return the finished pieces in the output file of a step."""
  rows = output.read_text(errors="replace").splitlines() if output.exists() else []
  ends = [row.split() for row in rows if row.startswith("== ")]
  return [words[1] for words in ends if words[2:3] and words[2].rstrip(",") in (Outcome.done, Outcome.failed)]


def run_step(name: str, step: Step, folder: Path) -> int:
  """Run the remaining pieces of a step within its time limit; return the number of failures."""
  output, begin, failed = folder / f"{name}.txt", time.monotonic(), 0
  left = [piece for piece in step.pieces if piece not in finished(output)]
  while left and (seconds := SECONDS - (time.monotonic() - begin)) > PATIENCE:
    piece, start = left[0], time.monotonic()
    outcome = run_piece([*step.before, sys.executable, *step.pieces[piece]], output, seconds)
    row = f"== {piece} {outcome}, {time.monotonic() - start:.0f} s"
    with output.open("a") as file:
      print(row, file=file)
    print(row, flush=True)
    if outcome is Outcome.cut:
      break
    failed += outcome is Outcome.failed
    left.pop(0)
  rest = f"left: {', '.join(left)}; the same command goes on" if left else "nothing is left"
  print(f"== {name}: {rest}", flush=True)
  return failed


def overview(folder: Path) -> Iterator[str]:
  """Yield a line for each step: estimated duration, finished pieces and description."""
  for name, step in STEPS.items():
    done = len(finished(folder / f"{name}.txt"))
    yield f"{name:<14}{step.minutes:>4g} min  {done}/{len(step.pieces)} done  {step.description}"


def run(words: Sequence[str] = ()) -> int:
  """Run a step, or list all steps; return the number of pieces that failed."""
  settings = assign(Settings(), pairs([*words], leaves(Settings())))
  folder = Path(settings.folder)
  if not settings.step:
    print(*overview(folder), sep="\n")
    return 0
  if settings.step not in STEPS:
    raise ConfigError(f"step={settings.step}: there is no such step; there are {', '.join(STEPS)}")
  step = STEPS[settings.step]
  if step.before and not shutil.which(step.before[0]):
    raise ConfigError(f"step={settings.step} needs {step.before[0]}, which is not on the PATH")
  folder.mkdir(parents=True, exist_ok=True)
  return run_step(settings.step, step, folder)


if __name__ == "__main__":
  try:
    sys.exit(run(sys.argv[1:]))
  except ConfigError as error:
    sys.exit(f"error: {error}")
