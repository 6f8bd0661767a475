"""Memory per environment in training: python -m benchmarks.training.memory_per_env [key=value ...].

The program prints `name: value` lines for each task with its own settings: the bytes per additional
environment, in the simulation and in total (state, task, rollout storage), and the number of environments per
gigabyte. On CUDA, `peak` includes temporary allocations of an iteration.
"""

import dataclasses
import gc
from collections.abc import Sequence

import torch

import tasks
from benchmarks.report import line, settings, start
from gpurobot.device.distributed import World
from gpurobot.learn.ppo import PPO
from gpurobot.learn.random import Random
from gpurobot.settings.algorithms import Precision
from gpurobot.settings.config import assign, defaults, option

ENVS = (256, 512)  # environments of two measurements; their difference excludes shared memory
GIGA = 1e9
OWN = [name for name in tasks.available() if "/" not in name]


@dataclasses.dataclass
class Settings:
  """Settings of a measurement."""

  device: str = option("auto", "cpu, cuda, cuda:<index>, or auto: cuda where there is one")
  tasks: list[str] = option(OWN, "names of tasks")  # noqa: RUF009 (a field)


def held() -> int:
  """Return the total bytes of all live tensors, counting shared storage once."""
  storages = {}
  for thing in gc.get_objects():
    # neither fake tensors nor sparse ones, which have no storage
    if type(thing) in (torch.Tensor, torch.nn.Parameter) and thing.layout is torch.strided:
      storage = thing.untyped_storage()
      storages[storage.data_ptr()] = storage.nbytes()
  return sum(storages.values())


def measure(name: str, num_envs: int, device: torch.device) -> tuple[int, int, int]:
  """Return the bytes of the simulation per environment, of a training, and of its peak (CUDA, else 0)."""
  gc.collect()
  before, peak = held(), 0
  module = tasks.load(name)
  config = assign(defaults(module), {"num_envs": num_envs, "compile": "off"})
  if config.ppo.precision is Precision.auto:  # current GPUs use bf16, so this does not depend on the machine
    config.ppo.precision = Precision.bf16
  if device.type == "cuda":
    torch.cuda.synchronize(device)
    torch.cuda.empty_cache()
    torch.cuda.reset_peak_memory_stats(device)
  task = module.Task(config.env, num_envs, device, random=Random(0, num_envs, 0, device))
  learner = PPO(task, config, World())
  if device.type == "cuda":
    learner.collect()
    learner.update()
    peak = torch.cuda.max_memory_allocated(device)
  return task.sim.bytes_per_env, held() - before, peak


def run(words: Sequence[str] = ()) -> None:
  """Measure and report."""
  chosen = settings(Settings(), words)
  device = World().device(chosen.device)
  for name in chosen.tasks:
    (simulation, few, low), (_, many, high) = (measure(name, count, device) for count in ENVS)
    one = (many - few) / (ENVS[1] - ENVS[0])
    line(f"environments.{name}.simulation_bytes", simulation)
    line(f"environments.{name}.bytes", one)
    if high:
      one = (high - low) / (ENVS[1] - ENVS[0])
      line(f"environments.{name}.peak_bytes", one)
    line(f"environments.{name}.per_gb", GIGA / one)


if __name__ == "__main__":
  start(run)
