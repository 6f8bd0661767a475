"""Actuators: a network in the place of servos, and the line of a robot file that needs none."""

import mujoco
import pytest
import torch

import physics
from physics.parity import MujocoSimulation
from tasks import base
from tasks.shared import actuator

ROBOT = base.ASSETS / "quadruped" / "robot.xml"
pytestmark = pytest.mark.xdist_group("actuator")  # one process builds the kernels


class Servo(torch.nn.Module):
  """PD control of the latest state, and a part for each older error."""

  def __init__(self, kp: float, kd: float, samples: int, older: float) -> None:
    super().__init__()
    self.weights = torch.nn.Linear(2 * samples, 1, bias=False)
    with torch.no_grad():
      self.weights.weight.copy_(torch.tensor([[kp, *[older] * (samples - 1), -kd, *[0.0] * (samples - 1)]]))

  def forward(self, numbers: torch.Tensor) -> torch.Tensor:
    return self.weights(numbers)


@pytest.fixture
def save(tmp_path):
  """Return a function that saves a module as TorchScript and returns the file."""

  def write(module):
    path = tmp_path / "network.pt"
    with pytest.warns(DeprecationWarning, match="torch.jit"):
      torch.jit.script(module).save(path)
    return str(path)

  return write


def test_torques_come_from_the_present_and_from_states_an_interval_ago(save):
  network = actuator.Network(save(Servo(20.0, 0.5, samples=2, older=3.0)), 2, 2, "cpu")
  past = torch.zeros(2, 2, network.memory, 3)  # two environments, three joints
  errors = torch.arange(1.0, 7.0).reshape(2, 3)
  seen = []
  for step in range(4):
    network.remember(past, (step + 1) * errors, 10 * errors)
    seen.append(network.torques(past))
  for step, before in enumerate((0, 0, 1, 2)):  # of the error two steps earlier; none before the episode
    expected = (20 * (step + 1) + 3 * before - 0.5 * 10) * errors
    torch.testing.assert_close(seen[step], expected)
  assert not seen[0].requires_grad


def test_a_file_that_is_no_such_network_is_named(save, tmp_path):
  with pytest.raises(ValueError, match=r"absent\.pt': there is no such file"):
    actuator.Network(tmp_path / "absent.pt", 3, 1, "cpu")
  (tmp_path / "text.pt").write_text("no network")
  with pytest.raises(ValueError, match=r"text\.pt': it is no TorchScript file"):
    actuator.Network(tmp_path / "text.pt", 3, 1, "cpu")
  with pytest.raises(ValueError, match="it takes no rows of 8 numbers"):
    actuator.Network(save(torch.nn.Linear(6, 1)), 4, 1, "cpu")
  with pytest.raises(ValueError, match=r"it gives \[2, 12\] for two rows, not \[2, 1\]"):
    actuator.Network(save(torch.nn.Linear(6, 12)), 3, 1, "cpu")


def test_a_robot_without_servos_has_motors_of_the_same_limits():
  servos = mujoco.MjModel.from_xml_path(str(ROBOT))
  motors = mujoco.MjModel.from_xml_string(actuator.without_servos(ROBOT))
  assert (motors.actuator_forcerange == servos.actuator_forcerange).all()
  assert not motors.actuator_ctrllimited.any()
  assert motors.actuator_gainprm[:, 0].tolist() == [1.0] * 12
  assert not motors.actuator_biasprm.any()


def test_a_network_that_is_the_servos_law_moves_the_quadruped_as_they_do(save, make_task, actions):
  path = save(Servo(35.0, 0.5, samples=3, older=0.0))
  servos, network = make_task("quadruped"), make_task("quadruped", actuator_network=path)
  servos.reset(), network.reset()
  start = servos.bend().clone()
  for action in 0.5 * actions(servos, 5):
    servos.step(action), network.step(action)
  # Servos are damped implicitly, a network's torque is not: within 0.1 s that makes a small difference.
  moved, gap = servos.bend() - start, servos.bend() - network.bend()
  assert gap.abs().mean() < 0.1 * moved.abs().mean()


def test_a_network_forgets_where_an_episode_ends(save, make_task):
  task = make_task("quadruped", actuator_network=save(Servo(35.0, 0.5, 3, 0.0)), episode_steps=2)
  task.reset()
  task.step(torch.ones(8, 12))
  assert task.past.abs().amax((1, 2, 3)).min() > 0.0
  task.step(torch.ones(8, 12))
  assert not task.past.any()


MOTOR = """
  <mujoco>
    <option timestep="0.001" gravity="0 0 0"/>
    <worldbody><body><joint name="joint"/><geom size="0.1"/></body></worldbody>
    <actuator>
      <dcmotor joint="joint" input="pos" nominal="24 20 30" controller="40 0 1 0 0 24"/>
    </actuator>
  </mujoco>"""


@pytest.mark.parametrize(
  ("angle", "speed", "torque"),
  [
    (0.1, 0.0, 40 * 0.4),  # the controller's
    (-0.5, 0.0, 20.0),  # standstill: 24 V make 20 N m
    (-0.5, 15.0, 10.0),  # half of the speed that it reaches without a load: half of that torque
    (0.4, 15.0, 40 * 0.1 - 15.0),  # braking is within its means
  ],
)
def test_a_motor_that_weakens_with_speed_is_a_line_of_the_robot_file(angle, speed, torque):
  sim = MujocoSimulation(physics.load_model(MOTOR), 1, outputs=["actuator_force"])
  sim.qpos[:], sim.qvel[:], sim.ctrl[:] = angle, speed, 0.5
  sim.forward()
  assert sim.actuator_force.item() == pytest.approx(torque, rel=1e-4)


def test_what_touches_counts_in_every_time_step_of_a_control_step(save, make_task, actions):
  """Of a network, which takes several launches, as of servos, which take one."""
  path = save(Servo(0.0, 0.0, samples=3, older=0.0))
  task = make_task("quadruped", actuator_network=path)
  task.reset()
  seen = []
  task._substep_runner._sim = Watched(task.sim, lambda: seen.append(task.sim.sensordata.clone()))
  for action in actions(task, 20):
    task.step(action)
  task.reset()
  seen.clear()
  task._substep_runner.begin()
  task.simulate()
  assert len(seen) == task.config.substeps > 1
  torch.testing.assert_close(task.sim.sensordata, torch.stack(seen).mean(0))


class Watched:
  """A simulation of which each launch is followed."""

  def __init__(self, sim, look):
    self.sim, self.look = sim, look

  def __getattr__(self, name):
    return getattr(self.sim, name)

  def step(self, *words):
    self.sim.step(*words)
    self.look()
