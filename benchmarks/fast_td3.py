"""FastTD3 (Seo et al. 2025) beside our SAC and TD3 on a task: who reaches a level of the return sooner?

`python -m benchmarks.fast_td3 folder=<checkout of FastTD3> task=cartpole level=490` trains all `runs` at the
same time, one thread each. FastTD3 is its own unmodified `fast_td3/train.py`, with our Gymnasium vector
environment in place of its simulator. It needs `pip install tyro` besides.
"""

import contextlib
import dataclasses
import importlib
import importlib.util
import os
import subprocess
import sys
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import Any
from unittest import mock

import torch
from torch import Tensor

import tasks
from benchmarks.report import line, start
from benchmarks.watch import CPU, EPISODES, WINDOW, Exam, Over, Watch
from gpurobot.adapters.gym import TaskVectorEnv
from gpurobot.config import TrainConfig, assign, defaults, leaves, off_policy, option, pairs
from gpurobot.device.distributed import World
from gpurobot.learn.off_policy.base import OffPolicy
from gpurobot.learn.off_policy.sac import SAC
from gpurobot.learn.off_policy.td3 import TD3
from gpurobot.learn.random import Random
from gpurobot.learn.statistics import Episodes

ROOT = Path(__file__).parents[1]
OWN: dict[str, type[OffPolicy]] = {"sac": SAC, "td3": TD3}
# FastTD3's settings for the DeepMind Control Suite, whose tasks resemble ours most.
SUITE = "CheetahRun"
PUBLISHED: dict[str, Any] = {"num_envs": 1024, "batch_size": 32768, "num_updates": 2}
MATCHED = {"num_envs": 128, "batch_size": 256, "num_updates": 8}  # environments, batch and ratio of ours
# Our rates, discount, share of the targets, range of noise, and about the size of our networks.
TUNED = {
  "gamma": 0.99,
  "tau": 0.05,
  "critic_learning_rate": 1e-3,
  "critic_learning_rate_end": 1e-3,
  "actor_learning_rate": 1e-3,
  "actor_learning_rate_end": 1e-3,
  "critic_hidden_dim": 512,
  "actor_hidden_dim": 512,
  "std_min": 0.001,
}
PEERS: dict[str, dict[str, Any]] = {
  "published": PUBLISHED,
  "matched": MATCHED,
  "tuned": MATCHED | TUNED,
}
QUIET = {"eval_interval": 0, "render_interval": 0, "save_interval": 0}  # no videos and no checkpoints


@dataclasses.dataclass
class Settings:
  """Settings of a comparison."""

  folder: str = option("", "checkout of FastTD3")
  task: str = option("cartpole", "name of a task with continuous actions")
  level: float = option(490.0, "mean return to reach")
  seconds: float = option(150.0, "processor seconds of each training, without its evaluations", low=0)
  between: int = option(2560, "environment steps between two evaluations", low=1)
  seed: int = option(1, "random seed", low=0)
  compile: bool = option(False, "let FastTD3 compile, as it does by default")
  runs: list[str] = option(  # noqa: RUF009 (a field)
    ["sac", "td3", "matched", "tuned"], f"trainings: {', '.join([*OWN, *PEERS])}"
  )


class Workers:
  """Our vector environment in the form that FastTD3 expects, with our log of the returns.

  `parts` are what FastTD3 makes: the policy and the normaliser of its observations.
  """

  asymmetric_obs = False

  def __init__(self, settings: Settings, num_envs: int, watch: Watch) -> None:
    self.parts: dict[str, Any] = {}
    self.exam = Exam(settings.task, watch)
    self.envs = TaskVectorEnv(num_envs, task=settings.task, output="torch", training=True)
    self.num_envs, self.settings, self.watch = num_envs, settings, watch
    task = self.envs.environments.task
    self.num_obs, self.num_actions = task.obs_dims["policy"], task.num_actions
    self.episodes = Episodes(num_envs, CPU)

  def reset(self) -> Tensor:
    """Start the clock and return the first observations [num_envs, width]."""
    obs: Tensor = self.envs.reset(seed=self.settings.seed)[0]
    self.watch.start()
    return obs.clone()

  def step(self, actions: Tensor) -> tuple[Tensor, Tensor, Tensor, dict[str, Any]]:
    """Step; return observations, rewards, ends and FastTD3's infos; raise Over at the end of the training."""
    self._note()
    obs, reward, terminated, truncated, info = self.envs.step(actions)
    ended = terminated | truncated
    self.episodes.add(reward, ended, torch.ones_like(ended), torch.zeros_like(ended))
    self.watch.steps += self.num_envs
    infos = {
      "time_outs": truncated & ~terminated,
      "observations": {"raw": {"obs": info["final_obs"].clone()}},
    }
    return obs.clone(), reward.clone(), ended, infos

  def _note(self) -> None:
    """Note what the training has reached with the updates after the last step, when it is time to."""
    if self.watch.due(WINDOW, self.num_envs):
      count, total = self.episodes.sums[:2].tolist()
      self.watch.saw("log", total / count if count else float("nan"))
      self.episodes.restart()
    if self.watch.due(self.settings.between, self.num_envs):
      self.exam.take(lambda obs: self.parts["actor"](self.parts["normalizer"](obs, update=False)))
    self.watch.check()

  def keep(self, part: str, kind: Callable[..., Any]) -> Callable[..., Any]:
    """Return a constructor that keeps the first thing that it makes."""

    def make(*args: Any, **kwargs: Any) -> Any:
      made = kind(*args, **kwargs)
      self.parts.setdefault(part, made)
      return made

    return make


def train_peer(settings: Settings, watch: Watch) -> float:
  """Run FastTD3's training script; return its gradient steps per environment step."""
  own = PEERS[settings.runs[0]]
  workers = Workers(settings, own["num_envs"], watch)
  flags = {"env_name": SUITE, "seed": settings.seed, **QUIET, **own}
  words = [f"--{key}={value}" for key, value in flags.items()]
  words += ["--no-cuda", "--no-use_wandb", "--compile" if settings.compile else "--no-compile"]
  with mock.patch.object(sys, "argv", ["train.py", *words]), contextlib.redirect_stdout(sys.stderr):
    script, networks = load(Path(settings.folder) / "fast_td3", workers)
    torch.set_num_threads(1)
    actor = workers.keep("actor", networks.Actor)
    normalizer = workers.keep("normalizer", script.EmpiricalNormalization)
    with (
      mock.patch.object(networks, "Actor", actor),
      mock.patch.object(script, "EmpiricalNormalization", normalizer),
      contextlib.suppress(Over),
    ):
      script.main()
  return float(own["num_updates"] / own["num_envs"])


def load(folder: Path, workers: Workers) -> tuple[Any, Any]:
  """Return FastTD3's training script and the module of its networks, with stand-ins for what they import."""
  playground = ModuleType("environments.mujoco_playground_env")
  playground.make_env = lambda *_, **__: (workers, workers, None)  # type: ignore[attr-defined]
  sys.modules |= {playground.__name__: playground, "environments": ModuleType("environments")}
  sys.modules["wandb"] = ModuleType("wandb")
  sys.path.insert(0, str(folder))
  spec = importlib.util.spec_from_file_location("fast_td3_train", folder / "train.py")
  assert spec is not None
  assert spec.loader is not None
  sys.modules[spec.name] = script = importlib.util.module_from_spec(spec)
  spec.loader.exec_module(script)
  return script, importlib.import_module("fast_td3")


def train_own(settings: Settings, watch: Watch) -> float:
  """Train with our algorithm; return its gradient steps per environment step."""
  name = settings.runs[0]
  module = tasks.load(settings.task)
  chosen = {"algorithm": name, "seed": settings.seed}
  config: TrainConfig = assign(defaults(module, algorithm=name), chosen)
  random = Random(config.seed, config.num_envs)
  env = module.Task(config.env, config.num_envs, CPU, random=random, training=True)
  learner, exam = OWN[name](env, config, World()), Exam(settings.task, watch)
  iteration = config.num_envs * off_policy(config).horizon  # environment steps
  watch.start()
  with contextlib.suppress(Over):
    while True:
      learner.collect()
      learner.update()
      watch.steps = learner.steps
      if watch.due(WINDOW, iteration):
        watch.saw("log", float(learner.report()["return"]))
      if watch.due(settings.between, iteration):
        exam.take(partial(act, learner))
      watch.check()
  return off_policy(config).updates_per_step / config.num_envs


def act(learner: OffPolicy, obs: Tensor) -> Tensor:
  """Return the actions [EPISODES, num_actions] of our policy without noise."""
  restart = torch.zeros(EPISODES, dtype=torch.bool)
  policy, _ = learner.agent.act({"policy": obs}, learner.agent.start(EPISODES), restart)
  return policy.action(policy.mode()).squeeze(0)


def train(settings: Settings) -> None:
  """Train one of the runs in this process and print its figures."""
  torch.set_num_threads(1)
  watch = Watch(settings.level, settings.seconds)
  name = settings.runs[0]
  updates = (train_own if name in OWN else train_peer)(settings, watch)
  watch.show(f"fast_td3.{settings.task}.{name}.seed{settings.seed}", updates)


def compare(settings: Settings, words: Sequence[str]) -> None:
  """Train all runs at once, one process and one thread each, and print their figures."""
  name = f"fast_td3.{settings.task}.seed{settings.seed}"
  line(f"{name}.level", settings.level)
  line(f"{name}.limit_cpu_seconds", settings.seconds)
  single = {"OMP_NUM_THREADS": "1", "TORCHINDUCTOR_COMPILE_THREADS": "1", "TQDM_DISABLE": "1"}
  command = [sys.executable, "-m", "benchmarks.fast_td3", *words]
  processes = [
    subprocess.Popen([*command, f"runs=[{each}]"], cwd=ROOT, env=os.environ | single, stdout=subprocess.PIPE)
    for each in settings.runs
  ]
  outputs = [process.communicate()[0].decode() for process in processes]
  print("".join(outputs), end="", flush=True)
  if any(process.returncode for process in processes):
    sys.exit("a training failed")


def run(words: Sequence[str]) -> None:
  """Compare, or train the only run that is named."""
  settings = assign(Settings(), pairs([*words], leaves(Settings())))
  unknown = {*settings.runs} - {*OWN, *PEERS}
  if unknown:
    sys.exit(f"runs={','.join(sorted(unknown))}: write some of {', '.join([*OWN, *PEERS])}")
  if {*settings.runs} & {*PEERS} and not (Path(settings.folder) / "fast_td3" / "train.py").exists():
    sys.exit(f"folder={settings.folder}: write the folder of a checkout of FastTD3")
  if len(settings.runs) == 1:
    train(settings)
  else:
    compare(settings, [word for word in words if not word.startswith("runs=")])


if __name__ == "__main__":
  start(run)
