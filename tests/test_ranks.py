"""Training on several ranks: the numbers of one; torchrun and restarts."""

import csv
import os
import re
import socket
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from torch import Tensor

import train
from gpurobot.run import checkpoint
from tests.gpurobot import own_code, styled, taught_pixels, toy, toy_pixels
from tests.ranks import HANG, launch
from tests.tasks import shaken_cartpole

ROOT = Path(__file__).parents[1]
TOLD = ("return", "length", "episodes", "policy_loss", "value_loss", "learning_rate")
LEARNED = ("amp/loss", "amp/policy_accuracy", "rnd/error")
OF_PPO, OF_SAC = ("kl", "clipped", "entropy"), ("entropy", "temperature", "sample_age")
OF_DISTILL = ("kl", "teacher_error", "teacher_share")
TOY = (f"task={toy.__file__}", "env.finite_below=1.2")  # some samples are invalid, not equally many anywhere
# Of fewer than 32 environments on a rank torch sums rows in another order, and the robots part ways in time.
ANT = ("task=ant", "num_envs=128", "ppo.reference_minibatch=512", "env.episode_steps=40")
HIDDEN = ("task=cartpole", "num_envs=128", "env.see_velocity=false", "env.episode_steps=40")
GRU = ("ppo.recurrent=gru", "ppo.recurrent_units=16", "ppo.sequence=8")
MEMORY = (*HIDDEN, *GRU, "ppo.minibatches=2", "ppo.reference_minibatch=1024", "ppo.lr_max=0.01")
MEANWHILE = (*TOY, "num_envs=128", "overlap=true", "ppo.kl_target=0.009")
STYLED = (f"task={styled.__file__}", TOY[1], "ppo.rnd.weight=0.5", "ppo.kl_target=0.009")
SHAKEN = (f"task={shaken_cartpole.__file__}", "num_envs=128", "ppo.minibatches=2", "ppo.lr_max=0.01")
SHAKEN += ("ppo.mirror_augment=true",)


# A buffer of few steps is soon full, and goes round. Adam makes rounding grow with every gradient step:
# ranks differ by 1e-12 after the 32 of this test, and by 1e-9 after 128.
OFF_POLICY = (
  "horizon=4",
  "greedy_envs=16",
  "updates_per_step=2",
  "batch_size=512",
  "buffer_size=3000",
  "learning_starts=4",
  "n_step=3",
  "precision=float64",
)
PIXELS = (f"task={toy_pixels.__file__}", "env.finite_below=1.2", "num_envs=64")
FEW = ("sac.batch_size=128", "sac.updates_per_step=1", "sac.random_shift=2")
SAC = (*TOY, "num_envs=128", "max_iterations=5", "algorithm=sac", *(f"sac.{word}" for word in OFF_POLICY))
LOSS = f"{own_code.__file__}:imitation"
OWN = ("sac.prioritized=true", f"sac.loss={LOSS}")
TD3 = ("task=cartpole", *SAC[2:4], "algorithm=td3", *(f"td3.{word}" for word in OFF_POLICY))
TD3 += ("td3.storage=uint8", f"td3.loss={LOSS}")


def training(folder: Path, size: int, words: tuple[str, ...]) -> dict[str, Tensor]:
  """Return the numbers of a training on `size` ranks."""
  words = [*words, f"run_dir={folder}", "log_every=1", "threads=1"]
  output = folder.with_suffix(".txt")
  assert launch(size, output, train.main, words) == [0] * size, output.read_text()
  return numbers(folder, size)


def numbers(folder: Path, size: int) -> dict[str, Tensor]:
  """Return all that must not depend on the ranks: weights, moments, and what was told of each iteration."""
  state = checkpoint.read(folder)["learner"]
  assert len(state["ranks"]) == size
  found = dict(state["network"])
  others = ("value_moments", "critics", "targets", "temperature")
  for name, part in {**state["observations"], **{name: state.get(name, {}) for name in others}}.items():
    found |= {f"{name} {key}": tensor for key, tensor in part.items()}
  for name, part in state.get("learned_rewards", {}).items():
    found |= {f"{name} {key}": tensor for key, tensor in {**part["network"], **part["moments"]}.items()}
    kept = [rank["replay"] for rank in part["ranks"] if "replay" in rank]
    found |= {f"{name} replay": torch.cat(kept, 1)} if kept else {}
  with (folder / "metrics.csv").open() as file:
    rows = list(csv.DictReader(file))
  columns = dict.fromkeys(TOLD + LEARNED + OF_PPO + OF_SAC + OF_DISTILL)
  names = [name for name in columns if name in rows[0]]
  told = {name: [float(row[name]) for row in rows] for name in names}
  found = {name: tensor for name, tensor in found.items() if tensor.numel()}  # of images alone some are empty
  return found | {name: torch.tensor(column, dtype=torch.float64) for name, column in told.items()}


def difference(one: dict[str, Tensor], many: dict[str, Tensor]) -> float:
  """Return the largest difference of all numbers, of large ones relative to them; inf where one is nan."""
  assert one.keys() == many.keys()
  found = [((many[name] - x).abs() / x.abs().clamp(min=1)).nan_to_num(torch.inf) for name, x in one.items()]
  same = [many[name].isnan() & x.isnan() for name, x in one.items()]  # no episode ended
  return max(float(x.masked_fill(nan, 0).max()) for x, nan in zip(found, same, strict=True))


# By this target a rank's own divergence and that of all move the learning rate differently.
CLIPPED = (*TOY, "ppo.max_grad_norm=0.1", "ppo.kl_target=0.009")
STUDENT = (TOY[1], "algorithm=distill", "distill.mix=0.7", "distill.mix_steps=4096")
TEACHERS = (TOY[0], *STUDENT, "num_envs=128", "teacher=<0>,<1>", *GRU)  # their shares follow the global index
SEEING = (f"task={taught_pixels.__file__}", *STUDENT, "teacher=<0>", "ppo.random_shift=2")
FIVE = "max_iterations=5"
CASES = {  # words, ranks, a column of numbers that are not all alike
  name: ((*words, "ppo.precision=float64", FIVE), ranks, column)
  for name, words, ranks, column in (
    ("toy", CLIPPED, 2, "learning_rate"),
    ("ant", ANT, 4, "learning_rate"),
    ("memory", MEMORY, 2, "learning_rate"),
    ("shaken", SHAKEN, 2, "learning_rate"),
    ("overlap", MEANWHILE, 2, "learning_rate"),
    ("pixels", (*PIXELS, "ppo.random_shift=2", "ppo.epochs=2"), 2, "learning_rate"),
    ("learned rewards", STYLED, 2, "amp/loss"),
    ("two teachers", TEACHERS, 4, "teacher_error"),
    ("a teacher of what is seen", SEEING, 2, "teacher_error"),
  )
} | {
  "sac": (SAC, 4, "value_loss"),
  "td3 with a loss": (TD3, 2, "value_loss"),
  "sac, priorities with a loss": ((*SAC, *OWN), 2, "value_loss"),
  "sac, pixels": ((*SAC, *PIXELS, *FEW), 2, "value_loss"),
}


@pytest.mark.parametrize("case", CASES)
def test_ranks_compute_what_one_computes(tmp_path, case):
  """In float64: gradients that are all rounding take a whole step of Adam by their sign."""
  words, size, column = CASES[case]
  for seed in {*re.findall("<(.)>", " ".join(words))}:
    training(tmp_path / f"teacher{seed}", 1, (*TOY, f"seed={seed}", "max_iterations=2"))
  words = [re.sub("<(.)>", rf"{tmp_path}/teacher\1", word) for word in words]
  one, many = (training(tmp_path / f"{ranks}", ranks, words) for ranks in (1, size))
  assert difference(one, many) < 1e-9
  assert len(one[column].unique()) > (1 if column == "learning_rate" else 3)  # there were decisions
  if case == "learned rewards":
    assert {"amp replay", "amp layers.0.weight", "rnd target.0.weight", "rnd m2"} <= one.keys()


def unlike(words: list[str], own: list[str], folder: Path) -> None:
  """Start one of two ranks with settings, or a task's file, of its own."""
  rank = int(os.environ["RANK"])
  path = folder / f"{rank}" / "mine.py"
  path.parent.mkdir()
  path.write_text(Path(toy.__file__).read_text() + f"# {rank if 'file' in own else 0}\n")
  os.chdir(path.parent)
  train.main(["task=mine.py", *words, *(word.format(rank) for word in own if word != "file")])


OTHER = "the ranks have different settings: {}; start all with the same"


@pytest.mark.parametrize(("own", "message"), [
  (["seed={}", "env.force=0.{}1"], OTHER.format("seed, env.force")),
  (["file"], OTHER.format("the file of task")),
  (["num_envs=65"], "num_envs=65 does not divide evenly among 2 rank(s) and 2 minibatch(es)"),
  (["threads=1"], ""),
])  # fmt: skip
def test_a_mistake_is_told_once_by_all_ranks_before_they_train(tmp_path, own, message):
  output = tmp_path / "output.txt"
  words = ["max_iterations=1", f"run_dir={tmp_path / 'run'}"]
  statuses = launch(2, output, unlike, words, own, tmp_path)
  assert [status > 0 for status in statuses] == [bool(message)] * 2, output.read_text()
  errors = [line for line in output.read_text().splitlines() if line.startswith("error: ")]
  assert len(errors) == bool(message)
  assert all(line.startswith(f"error: {message}") for line in errors)
  assert (tmp_path / "run").exists() == (not message)


def test_collectives_of_an_iteration_are_as_documented(tmp_path):
  training(tmp_path / "run", 2, (*TOY, "max_iterations=3", "ppo.epochs=3", "ppo.minibatches=2"))
  with (tmp_path / "run" / "metrics.csv").open() as file:
    counted = [float(row["collectives"]) for row in csv.DictReader(file)]
  # agreement, size of rewards, moments, gradients, and a report each time
  assert counted[1:] == [1 + 1 + 1 + 3 * 2 + 3] * 2


def torchrun(options: list[str], words: list[str], folder: Path) -> subprocess.Popen:
  """Start train.py under torchrun in a folder; its errors go to a file there."""
  command = [sys.executable, "-m", "torch.distributed.run", *options, str(ROOT / "train.py"), *words]
  environment = os.environ | {"OMP_NUM_THREADS": "1", "PYTHONPATH": str(ROOT)}
  with (folder / f"errors{len(list(folder.iterdir()))}.txt").open("w") as errors:
    return subprocess.Popen(command, cwd=folder, env=environment, stdout=subprocess.DEVNULL, stderr=errors)


MORTAL = """
import os, signal
from gpurobot.device import distributed
from gpurobot.run import checkpoint
from tests.gpurobot import toy
from tests.gpurobot.toy import Config, PPO, TRAIN

distributed.GRACE = 1.0
attempt = int(os.environ["TORCHELASTIC_RESTART_COUNT"])
if attempt == 0:
  checkpoint.Saver.due = False

class Task(toy.Task):
  def step(self, action):
    if os.environ["RANK"] == "1" and int(self.random.step) == (10, 30, None)[attempt]:
      os.kill(os.getpid(), signal.SIGKILL)
    return super().step(action)
"""


def test_torchrun_goes_on_where_a_rank_was_killed(tmp_path):
  """First before there is a checkpoint, then in the fourth iteration after some."""
  (tmp_path / "mortal.py").write_text(MORTAL)
  words = ["task=mortal.py", "max_iterations=6", "checkpoint_seconds=0", "log_every=1"]
  job = torchrun(["--standalone", "--nproc_per_node=2", "--max-restarts=2"], words, tmp_path)
  assert job.wait(timeout=HANG) == 0
  errors = (tmp_path / "errors1.txt").read_text().splitlines()
  errors = [line.partition(";")[0] for line in errors if line.startswith("error:")]
  assert errors == ["error: of 2 ranks, rank 1 died or hangs"] * 2
  (folder,) = (tmp_path / "runs" / "mortal").iterdir()
  whole = training(tmp_path / "whole", 2, (f"task={toy.__file__}", "max_iterations=6"))
  assert difference(whole, numbers(folder, 2)) == 0


def test_two_torchruns_are_one_training(tmp_path):
  with socket.create_server(("127.0.0.1", 0)) as probe:
    port = probe.getsockname()[1]
  meeting = ["--rdzv_backend=c10d", f"--rdzv_endpoint=127.0.0.1:{port}", "--rdzv_id=7"]
  words = [*TOY, "max_iterations=2", "log_every=1", "run_dir=run"]
  jobs = [torchrun(["--nnodes=2", "--nproc_per_node=1", *meeting], words, tmp_path) for _ in range(2)]
  assert [job.wait(timeout=HANG) for job in jobs] == [0, 0]
  together = training(tmp_path / "together", 2, (*TOY, "max_iterations=2"))
  assert difference(together, numbers(tmp_path / "run", 2)) == 0
