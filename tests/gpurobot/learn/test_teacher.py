import pytest
import torch

from gpurobot.learn.distribution import Gaussian, MultiDiscrete, Squashed
from gpurobot.learn.teacher import assign, check, check_same, choose, distribution, parameters
from gpurobot.settings.config import ConfigError
from tests.gpurobot import toy, toy_choices
from tests.gpurobot.policies import make
from tests.gpurobot.taught import make_student, make_teacher


@pytest.mark.parametrize(
  "settings", [{}, {"state_std": True}, {"squash": True}], ids=["", "state_std", "squash"]
)
def test_a_label_holds_the_whole_distribution(settings):
  teacher = make_teacher(5, **settings)
  obs, restart = torch.randn(5, 2), torch.ones(5, dtype=torch.bool)
  policy, _ = teacher.agent.act({"policy": obs}, teacher.state, restart)
  again = distribution(teacher(obs, restart), teacher.kind, ())
  assert type(again) is type(policy.__class__(policy.mean, policy.log_std)) is teacher.kind
  torch.testing.assert_close(policy.divergence(again), torch.zeros(1, 5).double(), rtol=0, atol=1e-12)


def test_a_label_of_discrete_actions_holds_their_probabilities():
  logits = torch.randn(4, 5)
  again = distribution(parameters(MultiDiscrete(logits, (3, 2))), MultiDiscrete, (3, 2))
  assert torch.equal(again.mode(), MultiDiscrete(logits, (3, 2)).mode())
  assert float(MultiDiscrete(logits, (3, 2)).divergence(again).abs().max()) == 0


def test_a_teacher_acts_as_its_policy_does_and_remembers_as_it_does():
  policy = make({"policy": 2, "critic": 3}, 2, recurrent="gru")
  teacher = make_teacher(4, recurrent="gru", precision="float32")
  teacher.agent.load_state_dict(policy.agent.state_dict() | {"observations": {
    "policy": policy.agent.observations.moments["policy"].state_dict()}})  # fmt: skip
  for step in range(4):
    obs, restart = torch.randn(4, 2), torch.tensor([step == 0, False, step == 2, False])
    mode = distribution(teacher(obs, restart), Gaussian, ()).mode()
    both = {"policy": obs, "critic": torch.zeros(4, 3)}
    torch.testing.assert_close(mode.float(), policy(both, restart), rtol=1e-6, atol=1e-6)
  assert float(teacher.state.abs().max()) > 0


def test_equal_shares_follow_the_global_index_and_the_task_may_know_better():
  env = make_student([make_teacher(8)], num_envs=8).env
  assert assign(env, 3, 0, 8).tolist() == [0, 0, 0, 1, 1, 1, 2, 2]
  assert assign(env, 4, 8, 16).tolist() == [2, 2, 2, 2, 3, 3, 3, 3]
  env.teacher_index = lambda count: torch.arange(8) % 2 if count == 2 else None
  assert assign(env, 2, 0, 8).tolist() == [0, 1] * 4
  assert assign(env, 1, 0, 8).tolist() == [0] * 8


def test_each_environment_gets_the_label_of_its_teacher():
  labels = [torch.full((4, 2), float(number)) for number in range(3)]
  assert choose(labels, torch.tensor([2, 0, 1, 2]))[:, 1].tolist() == [2, 0, 1, 2]


def mistakes() -> list[tuple]:
  """Return teachers, the names of the task's blocks, and what is wrong."""
  named, columns = make_teacher(2), "column of 'policy'"
  named.agent.spaces = named.agent.spaces._replace(names={columns: ["position", "height"]})
  choosing = make_teacher(2, choices=(3, 2))
  return [
    (make_teacher(2, {"policy": 5}), (), "teacher0 observed 5 numbers, and the group 'policy' has 2"),
    (choosing, (), r"has discrete actions of \[3, 2\] choices, and the task 2 continuous actions"),
    (make_teacher(2, squash=True), (), "teacher0 squashes its actions by tanh: write ppo.squash=true"),
    (named, ["position"] * 2, "'teacher0' was trained with column 1 of 'policy' as 'height', which is 'posi"),
    (named, ["height", "position"], "'teacher0' was trained with column 0 of 'policy' as 'position', which "),
    (named, ["position"], r"as 'height', which is '\(none\)' now: undo the change in the .* its robot$"),
  ]


@pytest.mark.parametrize(("teacher", "names", "message"), mistakes())
def test_a_teacher_that_does_not_fit_is_named(teacher, names, message):
  env = toy.Task(toy.Config(), 2, random=None)
  env.obs_names = {"policy": names} if names else {}
  with pytest.raises(ConfigError, match=message):
    check(teacher, env, "policy", 2, Gaussian)


def test_the_right_teacher_fits():
  env = toy.Task(toy.Config(), 2, random=None)
  env.obs_names = {"policy": ["position", "position"]}
  check(make_teacher(2), env, "policy", 2, Gaussian)
  check(make_teacher(2, squash=True), env, "policy", 2, Squashed)
  check(
    make_teacher(2, choices=(3, 2)),
    toy_choices.Task(toy.Config(), 2, random=None),
    "policy",
    2,
    MultiDiscrete,
  )


def test_other_teachers_than_those_of_the_beginning_are_told_apart():
  one, other = make_teacher(2), make_teacher(2, seed=1)
  assert one.digest == make_teacher(3).digest != other.digest
  check_same([one.digest, other.digest], [one, other])
  with pytest.raises(ValueError, match="teacher=teacher1 is not the one that it began with"):
    check_same([one.digest], [other])
  with pytest.raises(ValueError, match="it began with 2 teachers, not 1"):
    check_same([one.digest, other.digest], [one])
