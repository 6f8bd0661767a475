"""Installation check: python -m gpurobot.doctor [key=value ...].

It prints versions, devices, the kernel cache and the renderer. Then it compares the physics with MuJoCo C,
trains for a few seconds and saves a checkpoint. The exit status is 1 if physics or training fails.
"""

import dataclasses
import importlib.metadata
import math
import os
import platform
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import torch

import tasks
from gpurobot import extras
from gpurobot.device import numa
from gpurobot.device.distributed import World
from gpurobot.device.process import usable_cores
from gpurobot.learn.ppo import PPO
from gpurobot.learn.random import Random
from gpurobot.run import checkpoint
from gpurobot.settings.config import ConfigError, Switch, defaults, option, to_dict
from gpurobot.shell import cli
from physics.engines import MujocoSimulation
from physics.trace.kernel import kernel_cache

PACKAGES = ("gpurobot", "torch", "warp-lang", "mujoco-core", "tensordict", "gymnasium", "numpy")
TASK = "cartpole"  # its kernel compiles in seconds
STEPS = 20  # number of steps compared with MuJoCo C
CLOSE = 1e-3  # largest difference from MuJoCo C's positions after STEPS [m, rad]; float32 alone makes 1e-6
MEGA, GIGA = 1e6, 1e9


@dataclasses.dataclass
class Doctor:
  """Installation check."""

  seconds: float = option(8.0, "length of the trial training", "s", low=0)
  device: str = option("auto", "device: cpu, cuda, cuda:<index>; auto: cuda where there is one")
  debug: bool = option(False, "show the traceback of an error")


def versions() -> Iterator[tuple[str, str]]:
  """Yield (name, version) of the packages, then (name, missing packages) of the extras."""
  yield "python", f"{platform.python_version()} on {platform.platform()}"
  for package in PACKAGES:
    try:
      yield package, importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
      yield package, "not installed"
  for extra in extras.EXTRAS:
    missing = extras.missing(extra)
    hint = f"{', '.join(missing)} missing: pip install 'gpurobot[{extra}]'" if missing else "installed"
    yield f"extra {extra}", hint


def devices() -> Iterator[tuple[str, str]]:
  """Yield (name, description) of the CPU and of each CUDA device."""
  facts = Path("/proc/cpuinfo").read_text() if Path("/proc/cpuinfo").exists() else ""
  known = dict(line.split(":", 1) for line in facts.splitlines() if ":" in line)
  known = {key.strip(): value.strip() for key, value in known.items()}
  flags = known.get("flags", "").split()
  vectors = next((name for name in ("avx512f", "avx2") if name in flags), "unknown")
  name = known.get("model name") or platform.processor() or platform.machine()
  nodes = len(numa.cores_by_node())
  cores = f"{usable_cores()} of {os.cpu_count()} cores" + (f", {nodes} NUMA nodes" if nodes > 1 else "")
  yield "cpu", f"{name}, {cores}, vector instructions: {vectors}"
  for index in range(torch.cuda.device_count()):
    gpu = torch.cuda.get_device_properties(index)
    yield f"cuda:{index}", f"{gpu.name}, {gpu.total_memory / GIGA:.0f} GB, CUDA {torch.version.cuda}"
  if not torch.cuda.is_available():
    why = "torch is built without CUDA" if torch.version.cuda is None else "torch finds no GPU"
    yield "cuda", f"none: {why}"


def surroundings() -> Iterator[tuple[str, str]]:
  """Yield (name, description) of the folder of compiled kernels and of the offscreen renderer."""
  folder = kernel_cache()
  files = [file for file in folder.rglob("*") if file.is_file()]
  size = sum(file.stat().st_size for file in files) / MEGA
  writable = "" if os.access(folder, os.W_OK) else ", NOT writable: set WARP_CACHE_PATH to a writable folder"
  yield "kernel cache", f"{folder}, {len(files)} files, {size:.0f} MB{writable}"
  try:
    with extras.require_extra("viewer"):
      from gpurobot.viewer.offscreen import backend  # noqa: PLC0415
    yield "renderer", backend()
  except ConfigError as error:
    yield "renderer", f"none: {error}"


def check_physics(device: torch.device) -> str:
  """Step a robot here and in MuJoCo C; describe the difference; raise ConfigError if it is too large."""
  module, environments = tasks.load(TASK), 16
  config, start = module.Config(), time.monotonic()
  simulation = MujocoSimulation(module.Task.make_model(config), environments)
  here, there = (
    module.Task(
      config, environments, where, random=Random(0, environments, 0, where), training=False, simulation=sim
    )
    for where, sim in ((device, None), (torch.device("cpu"), simulation))
  )
  here.reset(), there.reset()
  worst, generator = 0.0, torch.Generator().manual_seed(0)
  for _ in range(STEPS):
    action = 2 * torch.rand(environments, here.num_actions, generator=generator) - 1
    here.step(action.to(device)), there.step(action)
    worst = max(worst, float((here.sim.qpos.cpu() - there.sim.qpos).abs().max()))
  if not worst < CLOSE:
    raise ConfigError(
      f"after {STEPS} steps positions differ by {worst:.1e} from MuJoCo C's; the limit is {CLOSE:g}"
    )
  seconds = time.monotonic() - start
  return f"{STEPS} steps agree with MuJoCo C to {worst:.1e} ({seconds:.1f} s with kernel compilation)"


def check_training(device: torch.device, seconds: float) -> str:
  """Train for `seconds`, save a checkpoint and describe both; raise ConfigError if a loss is not finite."""
  module, world = tasks.load(TASK), World()
  config = dataclasses.replace(defaults(module), compile=Switch.off)  # compiling would take longest
  env = module.Task(config.env, config.num_envs, device, random=Random(0, config.num_envs, 0, device))
  learner, start = PPO(env, config, world), time.monotonic()
  returns: list[float] = []
  while not returns or time.monotonic() - start < seconds:
    learner.collect()
    learner.update()
    report = {name: float(value) for name, value in learner.report().items()}
    returns += [report["return"]] if math.isfinite(report["return"]) else []
    if not (math.isfinite(report["policy_loss"]) and math.isfinite(report["value_loss"])):
      raise ConfigError(f"after {learner.iteration} iterations the losses are not finite")
  speed = learner.steps / (time.monotonic() - start)
  with tempfile.TemporaryDirectory() as folder:
    state = {"config": to_dict(config), "learner": learner.state_dict(), "seconds": 0.0}
    size = checkpoint.write(folder, state).stat().st_size / MEGA
    checkpoint.read(folder)
  return (
    f"{learner.iteration} iterations, {speed:,.0f} steps/s, return {returns[0]:.0f} to {returns[-1]:.0f}, "
    f"checkpoint of {size:.1f} MB"
  )


def attempt(name: str, check: Callable[[], str], *, debug: bool) -> bool:
  """Run a check and print its result; return whether it passed."""
  try:
    print(f"{name}: {check()}", flush=True)
  except Exception as error:
    if debug:
      raise
    message = " ".join(str(error).split())
    print(f"{name}: FAILED: {type(error).__name__}: {message}; debug=true shows the traceback", flush=True)
    return False
  return True


def look(settings: Doctor) -> None:
  """Print all findings; exit with status 1 if a check failed."""
  world = World()
  device = world.device(settings.device)
  for part in (versions, devices, surroundings):
    for name, fact in part():
      print(f"{name}: {fact}", flush=True)
  world.use(device, None)
  checks = {
    f"physics on {device}": lambda: check_physics(device),
    f"training on {device}": lambda: check_training(device, settings.seconds),
  }
  passed = [attempt(name, check, debug=settings.debug) for name, check in checks.items()]
  if not all(passed):
    raise SystemExit(1)


def main(argv: list[str]) -> None:
  """Check the installation with the settings in `argv`."""
  cli.start(Doctor(), "python -m gpurobot.doctor", argv, look)


if __name__ == "__main__":
  main(sys.argv[1:])
