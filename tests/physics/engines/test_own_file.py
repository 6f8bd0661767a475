"""MuJoCo C on a robot's own file, against MuJoCo C on the training's model."""

import re

import pytest
import torch

import physics
from physics.engines import MujocoSimulation, OwnFileSimulation
from physics.save import save_model
from tasks.core.errors import SettingError
from tasks.shared import robot_file
from tasks.walk import Config, Task
from tests.physics.robot.robots import urdf

BALL = '<worldbody><body name="ball" pos="9 9 1"><freejoint/><geom size="0.1"/></body></worldbody>'


@pytest.fixture(scope="module")
def text(tmp_path_factory) -> str:
  """Return a dog's model of the training, as a file that somebody might have written."""
  path = tmp_path_factory.mktemp("dog") / "robot.xml"
  save_model(Task.scene(Config()), path)
  return path.read_text()


def engines(path, text: str) -> tuple[MujocoSimulation, OwnFileSimulation]:
  """Return two robots in the model of the training, and on the own file of this text."""
  (path / "robot.xml").write_text(text)
  config = Config(robot=str(path / "robot.xml"))
  model = physics.load_model(Task.scene(config), vary=Task.vary)
  own = robot_file.own_file(config)
  return MujocoSimulation(model, 2, Task.outputs), OwnFileSimulation(model, 2, Task.outputs, own)


def difference(trained: MujocoSimulation, own: OwnFileSimulation) -> float:
  """Return the largest difference of the states after each control step; the second robot is reset once."""
  home, stance = (torch.tensor(getattr(trained.model, name)[0]) for name in ("key_qpos", "key_ctrl"))
  generator, largest = torch.Generator().manual_seed(0), 0.0
  mask = torch.tensor([False, True])
  for step in range(20):
    ctrl = stance + 0.3 * torch.rand(2, 4, len(stance), generator=generator, dtype=torch.float64) - 0.15
    for simulation in (trained, own):
      if step in (0, 10):
        simulation.reset(mask if step else None)
        simulation.qpos[mask if step else slice(None)] = home
        simulation.forward()
      simulation.step(4, ctrl)
    largest = max(largest, float((trained.qpos - own.qpos).abs().max()))
  return largest


def test_the_model_of_the_training_as_a_file_of_its_own_moves_alike(tmp_path, text):
  world = text.replace("<worldbody>", f"{BALL}<worldbody>", 1)
  trained, own = engines(tmp_path, re.sub(r"<keyframe>.*</keyframe>", "", world, flags=re.DOTALL))
  assert difference(trained, own) < 1e-9
  for name in Task.outputs:
    torch.testing.assert_close(getattr(own, name), getattr(trained, name), rtol=1e-6, atol=1e-6)


def test_motors_get_the_torque_of_servos_and_the_file_keeps_its_time_step(tmp_path, text):
  motor = r'<motor name="\1" joint="\2" gear="2" ctrlrange="-99 99"/>'
  motors = re.sub(r'<(?:general|position) name="(\w+)".* joint="(\w+)".*/>', motor, text)
  assert motors.count("<motor") == 12
  finer = motors.replace('timestep="0.005"', 'timestep="0.001"')
  assert finer != motors
  trained, own = engines(tmp_path, finer)
  assert 1e-6 < difference(trained, own) < 0.05
  assert own._mj.opt.timestep == pytest.approx(0.001)


@pytest.mark.filterwarnings("ignore:.*limits of speed of 8 joints")
def test_a_urdf_gets_a_floor_a_free_joint_and_motors(tmp_path):
  (tmp_path / "dog.urdf").write_text(urdf())
  config = Config(robot=str(tmp_path / "dog.urdf"))
  own, model = robot_file.own_file(config), physics.load_model(Task.scene(config), vary=Task.vary)
  assert not own.dof_armature.any()
  assert (own.actuator_forcerange[:, 1] == 30).all()
  simulation = OwnFileSimulation(model, 1, Task.outputs, own)
  simulation.qpos[:] = torch.tensor(model.key_qpos[0])
  for _ in range(100):
    simulation.step(4, torch.tensor(model.key_ctrl[0]).expand(1, 4, -1))
  assert simulation.qpos[0, 2] == pytest.approx(model.key_qpos[0, 2], abs=0.05)
  assert simulation.sensordata[0, : 4 * 7 : 7].sum() > 0.5 * 9.81 * float(model.body_mass.sum())


def test_actuators_that_follow_no_target_are_refused(tmp_path, text):
  velocity = re.sub(r"<(?:general|position)( name=.* joint=\"\w+\").*/>", r"<velocity\1/>", text)
  with pytest.raises(ValueError, match="actuators that are neither motors nor position servos"):
    engines(tmp_path, velocity)


def test_a_file_that_mujoco_refuses_is_named(tmp_path, text, monkeypatch):
  config = Config(robot=str(tmp_path / "robot.xml"))
  (tmp_path / "robot.xml").write_text(text)
  robot, spec = robot_file.legged(config)
  monkeypatch.setattr(robot_file, "legged", lambda _config: (robot, spec))
  (tmp_path / "robot.xml").write_text(text.replace("<mujoco", "<nothing", 1))
  with pytest.raises(SettingError, match=r"robot.xml.*this is no MJCF or URDF file"):
    robot_file.own_file(config)
