import re
from pathlib import Path

import pytest
import torch

import tasks
import train
from gpurobot import export
from gpurobot.deploy import demos, trained
from gpurobot.run import checkpoint, teachers
from gpurobot.settings.config import ConfigError, TrainConfig, assign
from tests.gpurobot import toy
from tests.mistakes.told import told

CPU, TOY, SMALL = torch.device("cpu"), f"task={toy.__file__}", ("num_envs=64", "threads=1")
OWN = f"{Path(__file__).parents[1] / 'own_code.py'}:Residual"
pytestmark = pytest.mark.usefixtures("keep_signal_handlers")


@pytest.fixture(scope="module")
def taught(tmp_path_factory):
  """The folder of teachers, and of a student of two of them."""
  folder = tmp_path_factory.mktemp("taught")
  for name, words in {
    "ppo": (),
    "own": (f"ppo.network={OWN}",),
    "other": ("seed=1",),
    "sac": ("algorithm=sac", "sac.hidden=[8]"),
  }.items():
    train.main([TOY, *SMALL, *words, f"run_dir={folder / name}", "max_iterations=2"])
  teacher = f"teacher={folder / 'ppo'},{folder / 'ppo'}"
  student = [TOY, *SMALL, "algorithm=distill", teacher, f"run_dir={folder / 'student'}", "max_iterations=2"]
  train.main([*student, "ppo.recurrent=gru", "ppo.recurrent_units=8"])
  return folder


def settings(teacher: object, **values) -> TrainConfig:
  own = {"algorithm": "distill", "teacher": str(teacher), "task": toy.__file__}
  return assign(TrainConfig(env=toy.Config()), own | values)


def test_each_teacher_is_loaded_with_its_settings(taught):
  one, other = teachers.load(settings(f"{taught / 'ppo'},{taught / 'sac'}"), toy, 4, CPU)
  assert (one.name, one.width, other.width) == (str(taught / "ppo"), 2, 2)
  saved = checkpoint.read(taught / "ppo")["learner"]
  weights = one.agent.network.state_dict()
  assert all(torch.equal(weights[name], x) for name, x in saved["network"].items())
  assert torch.equal(one.agent.observations.moments["policy"].mean, saved["observations"]["policy"]["mean"])
  assert not any(parameter.requires_grad for parameter in one.agent.network.parameters())


def test_without_distillation_there_is_none():
  assert teachers.load(TrainConfig(env=toy.Config()), toy, 4, CPU) == []


def test_a_network_of_ones_own_is_named_by_the_user(taught):
  with pytest.raises(ConfigError, match=rf"network '{re.escape(OWN)}', which runs code: add distill\."):
    teachers.load(settings(taught / "own"), toy, 4, CPU)
  (teacher,) = teachers.load(settings(taught / "own", **{"distill.teacher_network": OWN}), toy, 4, CPU)
  assert "Residual" in {type(module).__name__ for module in teacher.agent.network.modules()}
  with pytest.raises(ConfigError, match=r"has hidden layers; leave it out$"):
    teachers.load(settings(taught / "ppo", **{"distill.teacher_network": OWN}), toy, 4, CPU)


def test_a_teacher_of_another_task_is_named(taught):
  with pytest.raises(ConfigError, match=r"toy\.py', not of 'ant'; take one of this task$"):
    teachers.load(settings(taught / "ppo", task="ant"), toy, 4, CPU)


def test_a_teacher_may_be_of_a_task_that_is_extended():
  found = {name: teachers.extended(tasks.load(name)) for name in ("cube_lift_depth", "ant", "gym/Ant-v5")}
  assert found == {"cube_lift_depth": ["cube_lift"], "ant": [], "gym/Ant-v5": []}
  module, demo = tasks.load("cube_lift_depth"), str(demos.find("cube_lift"))
  (teacher,) = teachers.load(settings(demo, task="cube_lift_depth"), module, 4, CPU)
  assert teacher.width == 39
  with pytest.raises(ConfigError, match=r"of task 'ant', not of 'cube_lift_depth' or 'cube_lift'; take one"):
    teachers.load(settings(demos.find("ant"), task="cube_lift_depth"), module, 4, CPU)


def test_a_folder_without_a_checkpoint_is_named(taught):
  with pytest.raises(ValueError, match=rf"^no checkpoint at '{re.escape(str(taught))}'; the nearest is "):
    teachers.load(settings(taught), toy, 4, CPU)


def test_teachers_may_have_spaces_between_them_but_none_is_empty(taught):
  found = teachers.load(settings(f"{taught / 'ppo'}, {taught / 'ppo'}"), toy, 4, CPU)
  assert len(found) == 2
  with pytest.raises(ConfigError, match=r"^teacher=.*, has nothing beside a comma; write <one>,<another>$"):
    teachers.load(settings(f"{taught / 'ppo'},"), toy, 4, CPU)


def test_a_student_is_a_policy_as_any_other(taught, capsys):
  words = [f"checkpoint={taught / 'student'}", TOY]
  found = trained.load(trained.parse(trained.PolicySettings(), words), 4)
  assert found.config.algorithm == "distill"
  obs, restart = found.env.reset(), torch.ones(4, dtype=torch.bool)
  assert found.policy(obs, restart).shape == (4, 2)
  export.main(words)
  assert "actions differ by at most " in capsys.readouterr().out
  ppo = ("ppo.recurrent=gru", "ppo.recurrent_units=8", f"checkpoint={taught / 'student'}")
  assert train.main([TOY, *SMALL, *ppo, f"run_dir={taught / 'on'}", "max_iterations=1"]) == 0
  assert capsys.readouterr().err.count("the critic is new: the policy was distilled") == 1


def test_a_student_goes_on_with_its_teachers_alone(taught, capsys):
  resumed = [TOY, f"resume={taught / 'student'}", "max_iterations=3"]
  other = f"teacher={taught / 'ppo'},{taught / 'other'}"
  line = told(capsys, train.main, [*resumed, other])
  assert re.search(r"does not fit this training: teacher=\S*/other is not the one that it began with", line)
  assert train.main(resumed) == 0
  assert checkpoint.read(taught / "student")["learner"]["iteration"] == 3
