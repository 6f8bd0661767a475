import re

import pytest

from gpurobot.learn.identity import POLICY, check_hidden, compare, names_of
from gpurobot.settings.config import ConfigError
from tests.gpurobot import toy

THEN = {
  "column of 'policy'": ["up", "side"],
  "action": ["hip"],
  "joint": ["hip", "knee"],
  "model": {"mass": "1"},
}
UNDO = "undo the change in the task, its settings or its robot"


def test_environments_without_names_fit_by_their_sizes(recwarn):
  assert names_of(toy.Task(toy.Config(), 2, random=None)) == {}
  compare("run", THEN, {}, changed=False)
  compare("run", {}, {}, changed=False)
  assert not recwarn.list


@pytest.mark.parametrize(
  ("now", "message"),
  [
    ({"action": ["knee"]}, "action 0 as 'hip', which is 'knee' now: <undo>, <confirm>"),
    ({"joint": ["hip", "arm", "hand"]}, "joint 1 as 'knee', which is 'arm' now: <undo>, <confirm>"),
    ({"column of 'policy'": ["up"]}, "column 1 of 'policy' as 'side', which is '(none)' now: <undo>"),
    ({"action": ["\x1b[2J"]}, r"action 0 as 'hip', which is '\x1b[2J' now: <undo>, <confirm>"),
  ],
)
def test_the_first_difference_is_named_and_what_confirms_it_if_sizes_fit(now, message):
  message = message.replace("<undo>", UNDO).replace("<confirm>", "or add changed=true if it is meant")
  message = re.escape(f"'run' was trained with {message}")
  with pytest.raises(ConfigError, match=f"^{message}$"):
    compare("run", THEN, THEN | now, changed=False)
  compare("run", THEN, THEN | now, changed=True)


def test_joints_that_follow_and_other_kinds_of_columns_are_no_difference(recwarn):
  scene = THEN | {"joint": ["hip", "knee", "ball"], "model": {"mass": "2"}}
  compare("run", THEN, scene | {"column of 'critic'": ["x"]}, changed=False)
  compare("run", scene, THEN, changed=False)
  assert {str(own.message) for own in recwarn.list} == {"the model of 'run' had another mass"}


def test_another_model_is_a_warning_and_refused_where_it_must_be_the_same():
  now = THEN | {"model": {"mass": "2", "newer": "3"}}
  with pytest.warns(UserWarning, match="^the model of 'run' had another mass$"):
    compare("run", THEN, now, changed=False)
  with pytest.raises(
    ConfigError, match=f"mass, and resume= needs the same: {UNDO}, start a run by checkpoint="
  ):
    compare("run", THEN, now, changed=False, exact=True)
  compare("run", THEN, now, changed=True, exact=True)


class Hiding(toy.Task):
  """The toy, with blocks that its policy lacks."""

  hidden = {"speed": "env.see_speed=true", "place": "env.see_place=true", "mass": ""}  # noqa: RUF012


@pytest.mark.parametrize(
  ("columns", "width", "message"),
  [
    (["x", "speed"], 2, "observed speed, which the policy lacks now: add env.see_speed=true"),
    (["speed", "place"], 9, "speed and place, .* now: add env.see_speed=true env.see_place=true"),
    (None, 5, "speed and place, .* now: add env.see_speed=true env.see_place=true"),
    (["x", "mass"], 2, None),
    (None, 2, None),
  ],
)
def test_a_policy_that_saw_what_is_hidden_now_names_the_setting(columns, width, message):
  env, then = Hiding(toy.Config(), 2, random=None), {} if columns is None else {POLICY: columns}
  if message is None:
    check_hidden("run", then, width, env)
    return
  with pytest.raises(ConfigError, match=f"'run' .*{message}$"):
    check_hidden("run", then, width, env)


@pytest.mark.parametrize("then", [5, {"joint": 5}, {"joint": [5]}, {"model": []}, {"model": {"mass": 5}}])
def test_what_is_no_name_is_a_mistake_of_one_line(then):
  with pytest.raises(ValueError, match=r"^'run': names"):
    compare("run", then, THEN, changed=False)


@pytest.mark.parametrize(("joints", "model"), [(["hip"], "1"), ([], "1"), ([], "2")])
def test_a_checkpoint_that_lacks_joints_of_the_robot_is_refused(joints, model):
  then = THEN | {"joint": joints, "model": {"mass": model}}
  with pytest.raises(ConfigError, match=rf"^'run' was .* joint {len(joints)} as '\(none\)', which is "):
    compare("run", then, THEN, changed=False)
