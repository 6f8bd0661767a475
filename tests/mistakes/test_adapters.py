"""Mistakes in the use of the tasks from other libraries: one line names the argument or the action."""

import gymnasium
import numpy as np
import pytest
import torch

from gpurobot.adapters.environments import Environments
from gpurobot.adapters.gym import TaskEnv, TaskVectorEnv
from tests.gpurobot import toy, toy_choices

ZEROS = np.zeros((4, 2), np.float32)
ACTIONS = {
  "one number": (0.0, r"actions have the shape \[\]; the environments expect \[4, 2\]"),
  "nothing": (None, "actions are not numbers: "),
  "ragged": ([[0.0, 0.0], [0.0]], "actions are not numbers: "),
  "too wide": (np.zeros((4, 3)), r"actions have the shape \[4, 3\]; the environments expect"),
  "complex": (ZEROS * 1j, "actions are torch.complex"),
  "sparse": (torch.zeros(4, 2).to_sparse(), "actions are torch.float32 on cpu, torch.sparse_coo"),
  "without memory": (torch.zeros(4, 2, device="meta"), "actions are torch.float32 on meta"),
  "nan": (ZEROS + np.array([[0], [0], [np.nan], [0]]), "the action of environment 2 is nan"),
}
CHOICES = {
  "float": (torch.zeros(4, 2), "actions are torch.float32; the choices of the environments are int"),
  "negative": (torch.full((4, 2), -1), r"actions are choices from 0 to less than \[3, 2\]; some are not"),
  "too large": (torch.full((4, 2), 2), r"actions are choices from 0 to less than \[3, 2\]; some are not"),
}


@pytest.mark.parametrize("num_envs", [0, 1.5, True, 2**40])
def test_in_a_number_of_environments(num_envs):
  with pytest.raises(ValueError, match=f"num_envs={num_envs!r} is not a whole number from 1 to 16777216"):
    Environments(toy.__file__, num_envs, "cpu", training=False, settings={})


def test_in_make_vec():
  with pytest.raises(ValueError, match="num_envs=0 is not a whole number"):
    gymnasium.make_vec("gpurobot/Task-v0", num_envs=0, task=toy.__file__)


def test_a_number_may_be_of_numpy():
  assert Environments(toy.__file__, np.int64(2), "cpu", training=False, settings={}).num_envs == 2


def test_in_the_name_of_a_task():
  with pytest.raises(ValueError, match="task=3 is not a name: write a task's name or file"):
    Environments(3, 4, "cpu", training=False, settings={})


@pytest.mark.parametrize(("actions", "message"), ACTIONS.values(), ids=ACTIONS)
def test_in_actions(actions, message):
  env = TaskVectorEnv(4, task=toy.__file__)
  env.reset(seed=0)
  with pytest.raises(ValueError, match=message) as error:
    env.step(actions)
  assert "\n" not in str(error.value)


@pytest.mark.parametrize(("actions", "message"), CHOICES.values(), ids=CHOICES)
def test_in_choices(actions, message):
  environments = Environments(toy_choices.__file__, 4, "cpu", training=False, settings={})
  environments.reset(0)
  with pytest.raises(ValueError, match=message):
    environments.step(actions)


def test_in_the_action_of_a_single_environment():
  env = TaskEnv(task=toy.__file__)
  env.reset(seed=0)
  with pytest.raises(ValueError, match="the action of environment 0 is nan"):
    env.step([0.0, np.nan])
