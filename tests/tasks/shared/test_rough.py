"""Robots of any file on uneven ground: sizes, starts, heights of feet, and settings without effect."""

import functools

import numpy as np
import pytest
import torch

from gpurobot.learn.random import Random
from physics.engines import OwnFileSimulation
from tasks import walk
from tasks.core.errors import SettingError
from tests.physics.robot.robots import BIPED, mjcf
from tests.tasks import in_mujoco

build = functools.partial(in_mujoco.build, walk)


@pytest.fixture
def step(tmp_path):
  """A file with ground that rises by 0.1 m at x = 0, with points 0.1 m apart."""
  file = tmp_path / "step.npz"
  heights = np.zeros((61, 81))
  heights[:, 41:] = 0.1
  np.savez(file, heights=heights, cell=0.1)
  return str(file)


def test_tiles_and_scan_have_the_size_of_the_robot():
  dog, tall = (
    build(terrain="rough", terrain_levels=2),
    build(robot=str(BIPED), terrain="rough", terrain_levels=2),
  )
  ratio = tall.found.leg_length / dog.found.leg_length
  assert ratio > 1.5
  for name in ("terrain_size", "terrain_cell", "scan_length"):
    assert getattr(tall.config, name) / getattr(dog.config, name) == pytest.approx(ratio, rel=0.02)
  assert tall.terrain.heights.max() / dog.terrain.heights.max() == pytest.approx(ratio, rel=0.05)
  assert tall.measure()["scan"].shape == dog.measure()["scan"].shape


def test_feet_are_as_high_as_above_the_ground_below_them(step):
  task = build(terrain=step, start_angle=0.0, start_velocity=0.0, start_offset=0.0)
  task.reset()
  task.sim.site_xpos[:, task.soles] = torch.tensor([[0.5, 0.0, 0.15], [-0.5, 0.0, 0.15]] * 2)
  task.update()
  expected = torch.tensor([0.05, 0.15] * 2) - task.radius
  torch.testing.assert_close(task.lifted()[0].float(), expected, atol=2e-3, rtol=0)


def test_a_trunk_is_low_over_the_ground_below_the_feet(step):
  task = build(terrain=step, start_angle=0.0, start_velocity=0.0)
  task.reset()
  assert not task.step(torch.zeros(2, task.num_actions))["terminated"].any()
  task.below[0] += 0.55 * task.found.stature
  assert task.terminated().tolist() == [True, False]


def test_commands_and_rewards_are_those_of_the_rough_quadruped_unless_given():
  task, flat = build(terrain="rough", terrain_levels=2, reward_tilt=-0.7), build()
  assert (task.config.command_standing, flat.config.command_standing) == (0.02, 0.1)
  assert (task.config.reward_vertical, flat.config.reward_vertical) == pytest.approx((-0.5, -1.0), rel=0.01)
  assert task.config.reward_tilt == -0.7


def test_the_robots_own_file_has_the_ground_of_the_training(tmp_path):
  ball = '<body name="ball" pos="9 9 9"><freejoint/><geom size="0.1"/></body>'  # so that indices differ
  (tmp_path / "dog.xml").write_text(mjcf(world=f'{ball}<geom type="plane" size="1 1 1"/>'))
  given = {"robot": str(tmp_path / "dog.xml"), "terrain": "stairs", "terrain_levels": 2, "level": 1}
  config = walk.Config(**given, start_angle=0.0, start_velocity=0.0)
  model, file = walk.Task.make_model(config), walk.Task.own_file(config)
  simulation = OwnFileSimulation(model, 2, walk.Task.outputs, file)
  own = walk.Task(config, 2, random=Random(0, 2), training=False, simulation=simulation)
  scans = []
  for task in (own, build(**given, start_angle=0.0, start_velocity=0.0)):
    task.reset()
    task.step(torch.zeros(2, task.num_actions))
    assert task.lifted().abs().max() < 0.01
    task.sim.qpos[:] = task.home
    task.sim.qpos[:, :2] = task.origin[:, :2] + 1.5
    scans.append(task.measure()["scan"])
  torch.testing.assert_close(*scans)
  assert scans[0].std() > 0.05


def test_robots_start_where_a_file_is_level_and_episodes_end_at_its_edge(step):
  task = build(64, terrain=step)
  task.reset()
  place = task.origin
  assert (place[:, 0].abs() > 0.5).all()  # not astride of the step
  torch.testing.assert_close(place[:, 2], 0.1 * (place[:, 0] > 0).float(), atol=1e-3, rtol=0)
  task.sim.qpos[0, 0] = 4.1
  task.update()
  assert (task.episode_steps == task.max_episode_steps).tolist() == [True] + 63 * [False]
  assert task.success() is None


def test_on_flat_ground_nothing_is_scanned():
  task = build()
  assert not task.uneven
  assert {"terrain", "kind", "scan"}.isdisjoint(vars(task))
  assert "scan" not in task.measure()


@pytest.mark.parametrize(
  ("given", "message"),
  [
    ({"level": 1}, "env.level has no effect with env.terrain=flat: leave it out"),
    ({"terrain": "stairs", "terrain_kinds": ["rubble"]}, "env.terrain_kinds has no effect"),
    ({"terrain": "rough", "level": 10}, "env.level=10 is none of env.terrain_levels=10"),
    ({"terrain": "a.npy"}, "a.npy has no unit: write env.terrain_cell=<metres> too"),
    ({"terrain": "a.npy", "terrain_cell": 0.1, "terrain_size": 4.0}, "env.terrain_size has no effect"),
  ],
)
def test_settings_that_do_not_go_together_end_in_one_line(given, message, tmp_path, monkeypatch):
  monkeypatch.chdir(tmp_path)
  np.save("a.npy", np.zeros((40, 40)))
  with pytest.raises(SettingError) as error:
    build(**given)
  assert message in str(error.value)
  assert "\n" not in str(error.value)


def test_ground_that_is_nowhere_level_is_refused(tmp_path):
  np.savez(tmp_path / "slope.npz", heights=np.arange(60.0)[:, None].repeat(60, 1), cell=0.1)
  with pytest.raises(SettingError, match="is nowhere level enough for a start"):
    build(terrain=str(tmp_path / "slope.npz"))
