import contextlib
import os
import re
import shutil
import signal
import sys
import threading
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest
import torch

import gpurobot
from gpurobot import own_packages
from gpurobot.run import checkpoint
from gpurobot.run.checkpoint import CheckpointError
from gpurobot.settings.config import ConfigError
from tests.gpurobot import toy

TOY = str(toy.__file__)


@pytest.fixture(scope="module")
def run(tmp_path_factory):
  """A run that tests only read."""
  folder = tmp_path_factory.mktemp("runs") / "run"
  return gpurobot.train(TOY, num_envs=32, max_iterations=3, log_every=1, run_dir=folder)


def test_settings_may_be_nested_and_of_any_kind_of_number(tmp_path):
  run = gpurobot.train(
    TOY,
    num_envs=np.int64(32),
    max_iterations=1,
    run_dir=tmp_path,
    ppo={"lr": np.float64(2e-3), "hidden": [8]},
    env={"force": 0.25},
    **{"ppo.gamma": 0.5},
  )
  settings = {key: run.config[key] for key in ("num_envs", "ppo.lr", "ppo.hidden", "env.force", "ppo.gamma")}
  assert list(settings.values()) == [32, 2e-3, [8], 0.25, 0.5]


def test_a_run_tells_what_it_left(run):
  assert run.folder.name == "run"
  assert run.metrics["steps"].tolist() == [256, 512, 768]
  assert run.metrics["return"].dtype == np.float64
  assert run.summary["iterations"] == 3
  assert eval(repr(run), {"gpurobot": gpurobot}).folder == run.folder


def test_the_newest_of_several_runs_is_loaded(run, tmp_path):
  shutil.copytree(run.folder, tmp_path / "run")
  gpurobot.train(TOY, num_envs=32, max_iterations=1, run_dir=tmp_path / "later")
  assert gpurobot.load(tmp_path, TOY).folder == tmp_path / "later"
  with pytest.raises(CheckpointError, match="nowhere"):
    gpurobot.load(tmp_path / "nowhere")


def test_two_trainings_of_a_second_have_folders_of_their_own(tmp_path, monkeypatch):
  monkeypatch.chdir(tmp_path)
  folders = {gpurobot.train(TOY, num_envs=32, max_iterations=0).folder for _ in range(3)}
  assert len(folders) == 3


def test_a_policy_takes_arrays_and_tensors(run):
  obs = np.random.default_rng(0).normal(size=(5, 2)).astype(np.float32)
  actions = run.policy(obs)
  assert actions.shape == (5, 2)
  assert np.array_equal(run.policy(obs.astype(np.float64)), actions)
  assert np.allclose(run.policy(obs[3]), actions[3], atol=1e-6)
  tensor = run.policy(torch.as_tensor(obs))
  assert torch.equal(tensor, torch.as_tensor(actions))
  with pytest.raises(ValueError, match=r"^observations .* \[5, 3\]; the policy expects \[n, 2\]$"):
    run.policy(np.zeros((5, 3)))


def test_the_best_policy_is_at_hand(tmp_path):
  run = gpurobot.train(TOY, max_iterations=8, log_every=1, run_dir=tmp_path)
  obs = np.ones((3, 2), dtype=np.float32)
  assert run.best_policy(obs).shape == run.policy(obs).shape


def test_a_recurrent_policy_remembers_until_its_episode_ends(tmp_path):
  settings = {"ppo.recurrent": "gru", "ppo.recurrent_units": 8}
  run = gpurobot.train(TOY, num_envs=32, max_iterations=1, run_dir=tmp_path, **settings)
  obs = np.ones((2, 2), np.float32)
  first, second = run.policy(obs), run.policy(obs)
  assert not np.allclose(first, second)
  run.policy.reset([True, False])
  third = run.policy(obs)
  assert np.allclose(third[0], first[0])
  assert not np.allclose(third[1], first[1])
  run.policy.reset()
  assert np.array_equal(run.policy(obs), first)


def test_a_callback_sees_each_iteration_and_may_stop(tmp_path):
  seen = []

  def callback(learner, row):
    seen.append((learner.iteration, row.get("iteration")))
    return len(seen) < 4

  run = gpurobot.train(TOY, callback, num_envs=32, log_every=2, run_dir=tmp_path)
  assert seen == [(1, None), (2, 2), (3, 2), (4, 4)]
  assert run.summary["iterations"] == 4
  assert gpurobot.train(resume=tmp_path, task=TOY, max_iterations=6).summary["iterations"] == 6


def test_the_process_is_left_as_it_was(tmp_path):
  def facts():
    return (
      torch.get_num_threads(),
      torch.get_float32_matmul_precision(),
      torch.get_rng_state().tolist(),
      [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)],
      dict(os.environ),
    )

  before = facts()
  gpurobot.train(TOY, num_envs=32, max_iterations=1, threads=1, seed=7, tf32=True, run_dir=tmp_path / "a")
  assert facts() == before
  with pytest.raises(ConfigError):
    gpurobot.train(TOY, num_envs=32, max_iterations=1, threads=1, run_dir=tmp_path / "a")
  assert facts() == before


LEAVE = 'import os; os.chdir(os.path.dirname(__file__) + "/elsewhere")'


@pytest.mark.parametrize(
  ("code", "callback"),
  [
    ("", lambda *_: os.chdir("elsewhere")),
    (LEAVE, None),
    (f"class Task(Task):\n  def _reset(self, *a):\n    {LEAVE}\n    return super()._reset(*a)", None),
  ],
)
def test_a_relative_folder_survives_another_working_directory(tmp_path, monkeypatch, code, callback):
  monkeypatch.chdir(tmp_path)
  (tmp_path / "elsewhere").mkdir()
  (tmp_path / "leaving_toy.py").write_text(f"from tests.gpurobot.toy import *\n{code}\n")
  run = gpurobot.train("leaving_toy.py", callback, run_dir="run", max_iterations=1, num_envs=64)
  assert Path.cwd() == tmp_path / "elsewhere"
  assert (run.folder, run.summary["iterations"]) == (tmp_path / "run", 1)


def test_a_loaded_run_survives_another_working_directory(tmp_path, monkeypatch):
  monkeypatch.chdir(tmp_path)
  (tmp_path / "own_toy.py").write_text("from tests.gpurobot.toy import *\n")
  gpurobot.train("own_toy.py", run_dir="own", max_iterations=1, num_envs=32)
  found = gpurobot.load("own", "own_toy.py")
  (tmp_path / "elsewhere").mkdir()
  monkeypatch.chdir("elsewhere")
  assert found.summary["iterations"] == 1
  assert found.policy(np.ones(2)).shape == (2,)


@pytest.mark.parametrize("names", [5, ["a"], {"action": 5}])
def test_damaged_names_are_a_mistake_of_one_line(run, tmp_path, names):
  saved = checkpoint.load(run.folder / "checkpoint.pt")
  checkpoint.save(tmp_path / "checkpoint.pt", saved | {"learner": saved["learner"] | {"names": names}})
  with pytest.raises(CheckpointError, match=r"^'.*' does not fit its own settings: ") as error:
    gpurobot.load(tmp_path, TOY).policy  # noqa: B018
  assert "\n" not in str(error.value)


def test_a_second_training_of_another_thread_is_refused(tmp_path):
  found = []

  def second():
    try:
      gpurobot.train(TOY, num_envs=32, max_iterations=1, run_dir=tmp_path / "b")
    except ConfigError as error:
      found.append(str(error))

  def callback(*_):
    thread = threading.Thread(target=second)
    thread.start()
    thread.join()

  gpurobot.train(TOY, callback, num_envs=32, max_iterations=1, run_dir=tmp_path / "a")
  assert found == ["a training runs in another thread: wait for its end, or train in a process of its own"]
  second()
  assert len(found) == 1


@pytest.mark.parametrize(
  "change",
  [
    lambda: torch.set_grad_enabled(False),
    lambda: torch.set_default_device("meta"),
    lambda: torch.set_default_dtype(torch.float64),
  ],
)
def test_a_callback_that_changes_defaults_of_torch_is_refused(tmp_path, change):
  try:
    with pytest.raises(ConfigError, match=r"^the callback changes torch's default type, "):
      gpurobot.train(TOY, lambda *_: change(), num_envs=32, max_iterations=2, run_dir=tmp_path)
  finally:
    torch.set_default_device(None)
  assert torch.is_grad_enabled()
  assert torch.get_default_dtype() is torch.float32


@contextlib.contextmanager
def default(set_default, value, before):
  set_default(value)
  try:
    yield
  finally:
    set_default(before)


@pytest.mark.parametrize("defaults", [
  lambda: default(torch.set_default_dtype, torch.float64, torch.float32),
  lambda: torch.device("meta"),
  torch.inference_mode,
])  # fmt: skip
def test_the_user_s_defaults_of_torch_change_nothing(run, tmp_path, defaults):
  obs = np.ones((3, 2), dtype=np.float32)
  with defaults():
    modes = torch.get_default_dtype(), torch.get_default_device(), torch.is_inference_mode_enabled()
    other = gpurobot.train(TOY, num_envs=32, max_iterations=3, log_every=1, run_dir=tmp_path / "other")
    action = other.policy(obs)
    assert modes == (torch.get_default_dtype(), torch.get_default_device(), torch.is_inference_mode_enabled())
  assert np.array_equal(run.policy(obs), action)


@pytest.mark.parametrize(("defaults", "output"), [
  (lambda: default(torch.set_default_dtype, torch.float64, torch.float32), "torch"),
  (lambda: default(torch.set_default_device, "meta", None), "numpy"),
  (torch.inference_mode, "torch"),
])  # fmt: skip
def test_environments_step_under_other_defaults_of_torch(defaults, output):
  found = []
  for mode in (contextlib.nullcontext, defaults):
    env = gpurobot.make("cartpole", num_envs=3, output=output, training=True)
    with mode():
      env.reset(seed=1)
      found.append([np.asarray(env.step(np.ones((3, 1)))[0]) for _ in range(3)])
  assert np.array_equal(*found)


def test_autocast_is_refused_as_it_keeps_the_first_casts_of_weights(tmp_path):
  with torch.autocast("cpu"), pytest.raises(ConfigError, match=r"torch\.autocast is on: call "):
    gpurobot.train(TOY, max_iterations=1, run_dir=tmp_path)


def test_another_thread_may_train(tmp_path):
  runs = []
  thread = threading.Thread(
    target=lambda: runs.append(gpurobot.train(TOY, num_envs=32, max_iterations=1, run_dir=tmp_path))
  )
  thread.start()
  thread.join()
  assert runs[0].summary["iterations"] == 1


@pytest.mark.parametrize(
  ("settings", "message"),
  [
    ({"ppo": {"lrr": 1}}, "unknown key 'ppo.lrr'; the nearest is 'ppo.lr'"),
    ({"num_envs": -1}, "num_envs=-1 is out of range"),
    ({"resume": "nowhere"}, "'nowhere'"),
  ],
)
def test_mistakes_are_errors_of_one_line(settings, message):
  with pytest.raises(ValueError, match=re.escape(message)) as error:
    gpurobot.train(TOY, **settings)
  assert "\n" not in str(error.value)


def test_environments_are_gymnasium_s():
  envs = gpurobot.make(TOY, num_envs=3, output="torch", force=0.1)
  obs, _ = envs.reset(seed=0)
  assert obs.shape == (3, 2)
  with pytest.raises(AttributeError, match="no attribute 'trian'"):
    gpurobot.trian  # noqa: B018
  assert {"train", "load", "make"} <= {*dir(gpurobot)}


def test_a_foreign_folder_of_the_same_name_is_named(monkeypatch):
  """Without __init__.py; of a file see `test_a_users_program_keeps_its_own_tasks`."""
  foreign = ModuleType("physics")
  foreign.__path__ = ["me/physics"]
  monkeypatch.setitem(sys.modules, "physics", foreign)
  with pytest.raises(ImportError, match=r"^gpurobot needs its own package 'physics', which me/physics hides"):
    own_packages.prefer()
