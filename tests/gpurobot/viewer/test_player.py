import math
import shutil

import numpy as np
import pytest

from gpurobot.run import checkpoint
from gpurobot.settings.config import ConfigError
from gpurobot.viewer.player import checkpoints


def test_the_policy_acts_in_every_environment(make_player):
  player = make_player()
  before = player.task.sim.qpos.clone()
  player.step()
  assert player.time == player.task.dt
  assert (player.task.sim.qpos != before).any(1).all()
  assert player.terms["height"] == pytest.approx(2 * float(player.task.sim.qpos[0, 9]), rel=0.01)
  assert player.episode_return == pytest.approx(sum(player.terms.values()))


def test_return_and_steps_are_of_the_episode_that_is_looked_at(make_player):
  player = make_player()
  for _ in range(41):
    player.step()
  assert player.episode_steps == 1
  assert player.episode_return == pytest.approx(sum(player.terms.values()))
  player.look_at(1)
  assert (player.episode_steps, player.episode_return) == (0, 0)
  player.step()
  player.look_at(1)
  assert player.episode_steps == 1
  player.restart()
  assert (player.time, player.episode_steps) == (0, 0)


def test_a_push_changes_the_velocity_of_the_robot_that_is_looked_at(make_player):
  player = make_player()
  player.look_at(1)
  player.push(2.0, math.pi / 2)
  qvel = player.task.sim.qvel
  assert qvel[1].tolist() == pytest.approx([0] * 6 + [0, 2] + [0] * 5, abs=1e-6)
  assert not qvel[0].any()


def test_a_robot_that_is_held_is_pushed_at_its_first_joint(make_player):
  player = make_player()
  player.robot = type(player.robot)(body=1, dof=3, free=False, roams=False)
  player.push(2.0, math.pi / 2)
  assert player.task.sim.qvel[0].nonzero().tolist() == [[3]]


def test_commands_take_the_place_of_the_task_s(make_player):
  player = make_player()
  assert player.commands.ranges["sideways"] == (-0.5, 0.5, "m/s")
  player.command = [0.5, -0.25, 0.0]
  player.step()
  assert player.observations()["command"].tolist() == [0.5, -0.25, 0]
  assert player.task.command[1].tolist() == [0, 0, 0]


def test_the_best_policy_of_a_run_can_be_looked_at(box_run, tmp_path):
  shutil.copytree(box_run, tmp_path, dirs_exist_ok=True)
  run, best = str(tmp_path), str(shutil.copy(tmp_path / checkpoint.NAME, tmp_path / checkpoint.BEST))
  assert checkpoints(run)[:2] == [run, best]
  assert checkpoints(best)[:2] == [best, run]


def test_the_policies_of_a_run_can_be_exchanged(make_player, box_run, tmp_path):
  player = make_player()
  run, filmed = str(box_run), str(box_run / "videos" / "000003.pt")
  assert checkpoints(run) == checkpoints(str(box_run / "checkpoint.pt")) == [run, filmed]
  assert checkpoints(filmed) == [filmed, run]

  other = checkpoint.read(box_run)
  for weights in other["learner"]["network"].values():
    weights.fill_(0.5)
  checkpoint.write(tmp_path, other)
  before = player.policy
  player.load(str(tmp_path))
  assert player.policy is not before
  assert all((weights == 0.5).all() for weights in player.policy.agent.network.state_dict().values())


@pytest.mark.parametrize(("key", "value", "message"), [
  ("task", "{}", "is of task '.*other[.]py', not of"),
  ("ppo.network", "{}:Network", "was trained with the network '.*other[.]py:Network', which runs code"),
])  # fmt: skip
def test_code_that_another_checkpoint_names_is_not_run(make_player, box_run, tmp_path, key, value, message):
  content = checkpoint.read(box_run)
  other = tmp_path / "other.py"
  other.write_text(f"open({str(tmp_path / 'imported')!r}, 'w')")
  content["config"][key] = value.format(other)
  checkpoint.write(tmp_path, content)
  with pytest.raises(ConfigError, match=message):
    make_player().load(str(tmp_path))
  assert not (tmp_path / "imported").exists()


def test_a_rival_acts_in_every_second_environment(make_player, box_run, tmp_path):
  content = checkpoint.read(box_run)
  for name, weights in content["learner"]["network"].items():
    if name.startswith("head"):
      weights.fill_(0.0)  # it does nothing
  checkpoint.write(tmp_path, content)
  alone, duel = make_player(4), make_player(4, str(tmp_path))
  for player in (alone, duel):
    player.step()
  action = duel.task.action
  assert action[::2].equal(alone.task.action[::2])
  assert action[::2].any()
  assert not action[1::2].any()
  for _ in range(40):
    duel.step()
  assert [count for _, count in duel.scores()] == [2, 2]
  assert duel.scores()[0] != duel.scores()[1]


def test_a_policy_s_images_are_shown_as_it_sees_them(seeing_player, make_player):
  assert make_player().policy_images(0) == {}
  player = seeing_player
  player.step()
  shown = player.policy_images(1)
  assert list(shown) == ["view", "depth"]
  assert {(image.shape, image.dtype.name) for image in shown.values()} == {((20, 32, 3), "uint8")}
  assert (shown["view"] == player._obs["view"][1].numpy()).all()
  last = (player._obs["depth"][1, ..., 2].float() - 1) / 4 * 255
  np.testing.assert_allclose(shown["depth"][..., 0], last, atol=1)
  assert set(player.observations()) == {"height", "command"}
