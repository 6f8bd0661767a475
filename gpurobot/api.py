"""Python interface: train a task, load a run, make environments."""

import contextlib
import functools
import signal
import threading
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

import tasks
from gpurobot import training
from gpurobot.adapters.gym import TaskVectorEnv
from gpurobot.deploy import trained
from gpurobot.deploy.deployed import Deployed
from gpurobot.deploy.policy import Policy
from gpurobot.device import distributed, process
from gpurobot.device.defaults import current_defaults, own_defaults
from gpurobot.learn.algorithm import Algorithm
from gpurobot.run import checkpoint, csv_log, folder
from gpurobot.run.files import read_json
from gpurobot.run.interrupt import STOPPING
from gpurobot.settings import config_files, references
from gpurobot.settings.config import ConfigError, algorithm_settings
from gpurobot.shell import cli

CPU = torch.device("cpu")
TRAINING = threading.RLock()  # torch's threads, random numbers and defaults belong to the process
# Gets the learner and the last row of the log, by column, after each iteration; False ends training.
Callback = Callable[[Algorithm, Mapping[str, float]], object]

# Builds a network for inputs of a width, with a list of units for its own use.
Network = Callable[[int, list[int]], nn.Module]


def _shape(zeros: Tensor) -> str:
  """Return the shape [n, ...] of an input as text, from one row of it."""
  return f"[n, {', '.join(map(str, zeros.shape[1:]))}]"


class RunPolicy:
  """The policy of a run: observations in, actions out, without noise.

  A recurrent one has a state for each environment: `reset` where an episode starts.
  """

  def __init__(self, deployed: Deployed) -> None:
    self._deployed, self._state = deployed, torch.zeros(0)

  @own_defaults()
  def __call__(self, obs: Any) -> Any:
    """Return actions [n, num_actions], or [num_actions], for raw observations [n, width], or [width].

    A policy with images takes a mapping: images by name [n, height, width, channels], and "obs", if it also
    gets numbers. Arrays give arrays, and tensors tensors on their device. Raises ValueError if a shape is
    wrong.
    """
    given: Mapping[str, Any] = obs if isinstance(obs, Mapping) else {"obs": obs}
    expected = {name: zeros for name, zeros in self._deployed.inputs.items() if name != "state"}
    if given.keys() != expected.keys():
      wanted = ", ".join(f"'{name}': {_shape(zeros)}" for name, zeros in expected.items())
      raise ValueError(f"observations have {[*given]}; the policy expects a mapping {{{wanted}}}")
    tensors = {name: torch.as_tensor(given[name]) for name in expected}
    single = [tensor.ndim < expected[name].ndim for name, tensor in tensors.items()]
    inputs = [self._input(name, tensor, expected[name]) for name, tensor in tensors.items()]
    action = self._act(inputs)
    action = action[0] if all(single) else action
    first = given[next(iter(expected))]
    return action.to(first.device) if isinstance(first, Tensor) else action.numpy()

  def _input(self, name: str, tensor: Tensor, zeros: Tensor) -> Tensor:
    """Return an input [n, ...] as the policy takes it; raise ValueError if its shape or type is wrong."""
    batch = tensor.unsqueeze(0) if tensor.ndim == zeros.ndim - 1 else tensor
    if batch.ndim != zeros.ndim or batch.shape[1:] != zeros.shape[1:]:
      what = "observations have" if name == "obs" else f"'{name}' has"
      raise ValueError(f"{what} the shape {list(tensor.shape)}; the policy expects {_shape(zeros)}")
    if zeros.dtype is torch.uint8 and tensor.dtype is not torch.uint8:
      raise ValueError(f"'{name}' is of {tensor.dtype}; the policy expects uint8, from 0 to 255")
    return batch.to(CPU, zeros.dtype)

  @torch.no_grad()
  def _act(self, inputs: list[Tensor]) -> Tensor:
    if not self._deployed.state_width:
      action: Tensor = self._deployed(*inputs)[0]
      return action
    if len(self._state) != len(inputs[0]):
      self._state = torch.zeros(len(inputs[0]), self._deployed.state_width)
    action, self._state = self._deployed(*inputs, self._state)
    return action

  def reset(self, ended: Any = True) -> None:
    """Start new episodes where `ended` [n], or everywhere; only a recurrent policy needs it."""
    ended = torch.as_tensor(ended, dtype=torch.bool, device=CPU)
    if len(self._state):
      self._state[ended.expand(len(self._state))] = 0


class Run:
  """A training and the content of its folder; each part is read on first access."""

  def __init__(
    self, place: str | Path, task: str | Path | None = None, network: str | Network | None = None
  ) -> None:
    """Open the run in a folder, or the newest run below it.

    task: its task if that is your own, a dotted module path or a .py file. network: its network if that is
    your own. Raises CheckpointError if there is no run.
    """
    self.folder = checkpoint.find(folder.newest_run(str(place))).parent.absolute()
    task = str(Path(task).absolute()) if task and str(task).endswith(".py") else task
    own = {"task": task, "network": network}
    self._own = {key: _word(key, value) for key, value in own.items() if value is not None}

  @functools.cached_property
  def metrics(self) -> dict[str, NDArray[np.float64]]:
    """The columns of metrics.csv by name, [rows] each; nan where there was nothing to log."""
    rows = csv_log.numbers(self.folder / "metrics.csv")
    return {name: np.array([row[name] for row in rows]) for name in (rows[0] if rows else ())}

  @functools.cached_property
  def config(self) -> dict[str, Any]:
    """The settings by key."""
    return self._read("config.json")

  @functools.cached_property
  def summary(self) -> dict[str, Any]:
    """The summary that the run writes at its end; empty until then."""
    return self._read("summary.json")

  @functools.cached_property
  def policy(self) -> RunPolicy:
    """The policy of the newest checkpoint, on the CPU."""
    return self._load(self.folder)

  @functools.cached_property
  def best_policy(self) -> RunPolicy:
    """The policy with the best mean return, on the CPU; raises CheckpointError if the run has none."""
    return self._load(self.folder / checkpoint.BEST)

  @own_defaults()
  def _load(self, source: Path) -> RunPolicy:
    config, saved = trained.read(str(source), self._own)
    with checkpoint.fitting(source, "its own settings"):
      policy = Policy(saved["learner"], algorithm_settings(config), 1, CPU)
    return RunPolicy(Deployed(policy, None))

  def _read(self, name: str) -> dict[str, Any]:
    path = self.folder / name
    return read_json(path) if path.exists() else {}

  def __repr__(self) -> str:
    return f"gpurobot.load({str(self.folder)!r})"


def train(task: str | Path | None = None, callback: Callback | None = None, **settings: Any) -> Run:
  """Train and return the run, as `python train.py` does.

  Settings are train.py's: `num_envs=1024`, `ppo={"lr": 1e-4}`, `env={"substeps": 2}`. A network or a
  loss of your own is a class or function: `ppo={"network": MyNetwork}`. Ctrl-C ends training with a
  checkpoint. torch's seed, threads, precision and memory are restored at the end.
  Raises ValueError on a mistake in the settings or in the task.
  """
  given = {key: _word(key, value) for key, value in config_files.flat(settings)}
  given |= {} if task is None else {"task": str(task)}
  with _unchanged():
    world = distributed.start()
    config, module = cli.configure(given, tasks.load, world)
    run = training.fit(
      config, module, world, _kept_to(callback) if callback else (lambda _learner, _row: None)
    )
    world.close()
  return Run(run.folder, task, algorithm_settings(config).network)


def _kept_to(callback: Callback) -> Callback:
  """Return a callback that raises ConfigError if it changes defaults of torch that the training needs."""

  def call(learner: Algorithm, row: Mapping[str, float]) -> object:
    before = current_defaults()
    answer = callback(learner, row)
    if current_defaults() != before:
      change = "the callback changes torch's default type, device or gradients"
      raise ConfigError(f"{change}: change them in a `with` block, as with torch.no_grad()")
    return answer

  return call


def load(place: str | Path, task: str | Path | None = None, network: str | Network | None = None) -> Run:
  """Return the run in a folder, or the newest run below it, see `Run`."""
  return Run(place, task, network)


@own_defaults()
def make(task: str | Path, num_envs: int = 1, **options: Any) -> TaskVectorEnv:
  """Return environments of a task as Gymnasium's vector environment, with the options of TaskVectorEnv."""
  return TaskVectorEnv(num_envs, task=str(task), **options)


def _word(key: str, value: Any) -> Any:
  """Return a setting as a run saves it: a function or class as its reference."""
  return references.name_of(key, value) if callable(value) else value


@contextlib.contextmanager
def _unchanged() -> Iterator[None]:
  """Restore random numbers, threads, precision, memory and signals of the process after the block."""
  threads, precision = torch.get_num_threads(), torch.get_float32_matmul_precision()
  if not TRAINING.acquire(blocking=False):
    raise ConfigError("a training runs in another thread: wait for its end, or train in a process of its own")
  handles = threading.current_thread() is threading.main_thread()
  handlers = {number: signal.getsignal(number) for number in STOPPING if handles}
  try:
    with torch.random.fork_rng(), own_defaults():
      yield
  finally:
    TRAINING.release()
    torch.set_num_threads(threads)
    torch.set_float32_matmul_precision(precision)
    process.release_memory()
    for number, handler in handlers.items():
      if handler is not None:  # one that Python did not set
        signal.signal(number, handler)
