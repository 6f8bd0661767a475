"""Steadiness by hand, on the quadruped in MuJoCo C."""

import math

import pytest
import torch

from tasks import ant, quadruped
from tasks.shared.steadiness import torque_limits
from tests.tasks import in_mujoco


@pytest.fixture
def task():
  task = in_mujoco.build(quadruped, command_standing=0.0)
  task.reset()
  task.sim.qvel.zero_()
  task.sim.actuator_force.zero_()
  task.sim.sensordata.zero_()
  return task


def values(task, *names):
  found = task.metrics()
  return [round(found[name][0].item(), 5) for name in names]


def test_change_and_jerk_of_the_action_are_means_over_the_joints(task):
  found = []
  for action in (0.5, 0.5, -0.5):
    task.action[:, :6] = action
    task.control()
    found.append(values(task, "action_change", "action_jerk"))
  assert found == [[0.25, 0.25], [0.0, 0.25], [0.5, 0.5]]


def test_joints_at_their_limits_power_and_jitter(task):
  task.control()
  task.sim.actuator_force[:, :2] = torch.tensor([-23.7, 20.0])  # the first is at its limit
  task.sim.qvel[:, 6:8] = torch.tensor([2.0, -3.0])
  # Beyond its range, within it, and 0.01 rad from its end.
  task.sim.qpos[:, 7:10] = torch.tensor([-0.9, 0.9, -2.808])
  task.sim.qvel[:, 3:6] = torch.tensor([0.3, 0.4, 9.0])
  task.update()
  limited = values(task, "torque_limited", "angle_limited", "fastest_joint")
  assert limited == pytest.approx([1 / 12, 2 / 12, 3.0], abs=1e-5)
  assert values(task, "power", "base_jitter") == pytest.approx([23.7 * 2 + 20 * 3, 0.5 / 0.02])


def test_transport_costs_nothing_at_a_command_to_stand_and_counts_from_the_start_else(task):
  task.command[1] = 0.0
  for speed in (1.0, 3.0):
    task.sim.qvel[:, 0] = speed
    task.sim.actuator_force[:, 0] = 10.0
    task.sim.qvel[:, 6] = 2.0
    task.update()
  cost = task.metrics()["transport_cost"]
  weight = 9.81 * task.model.body_mass.sum()
  assert cost.tolist() == pytest.approx([20 * 0.04 / (weight * 4 * 0.02), 0.0])


def test_the_impact_is_the_largest_force_of_the_last_landing_and_slip_is_of_feet_in_contact(task):
  weight = 9.81 * task.model.body_mass.sum()
  task.sim.sensordata[:, task.moving] = torch.tensor([0.3, 0.4, 9.0] + 3 * [0.1, 0.0, 0.0])
  found = []
  for force in (0.0, 0.5, 2.0, 3.0, 0.0, 1.0):  # it lands at the second, and at the last
    task.control()
    task.sim.sensordata[:, task.touch.start] = force * weight
    task.update()
    found.append(values(task, "foot_impact", "foot_slip"))
  assert [impact for impact, _ in found] == pytest.approx([0.0, 0.5, 2.0, 2.0, 2.0, 1.0], abs=1e-4)
  assert [slip for _, slip in found] == pytest.approx([0.0, 0.5, 0.5, 0.5, 0.0, 0.5])


def test_clearance_strides_and_duty_are_counted_by_foot(task):
  foot, weight = task.touch.start, 9.81 * task.model.body_mass.sum()
  task.command[:] = torch.tensor([1.0, 0.0, 0.0])
  found = []
  for height, touching in ((0.02, 1), (0.05, 0), (0.09, 0), (0.04, 0), (0.03, 1), (0.06, 0)):
    task.control()
    task.sim.sensordata[:, task.touch] = weight / 4
    task.sim.sensordata[:, foot] = weight * touching
    task.sim.site_xpos[:, task.soles, 2] = 0.02
    task.sim.site_xpos[:, task.soles][:, 0, 2] = height
    task.update()
    found.append(values(task, "foot_clearance", "stride_rate", "duty_difference"))
  landed = [[0.07 / 4, 1 / 4 / 0.1, 3 * 0.02 / 1.1], [0.07 / 4, 1 / 4 / 0.12, 4 * 0.02 / 1.12]]
  assert [row[:2] for row in found[:4]] == 4 * [[0.0, 0.0]]
  assert found[4] == pytest.approx(landed[0], abs=1e-5)
  assert found[5] == pytest.approx(landed[1], abs=1e-5)


def test_the_tilt_is_the_angle_from_upright(task):
  task.control()
  task.sim.qpos[:, 3:7] = torch.tensor([math.cos(0.15), 0.0, math.sin(0.15), 0.0])
  task.update()
  assert values(task, "tilt") == pytest.approx([0.3], abs=1e-4)


def test_a_motors_limit_follows_from_its_largest_control():
  assert torque_limits(quadruped.Task.make_model(quadruped.Config()))[:3] == [23.7, 23.7, 35.55]
  assert torque_limits(ant.Task.make_model(ant.Config())) == [1.0] * 8


def test_what_was_measured_is_forgotten_with_the_episode(task):
  task.action.fill_(1.0)
  task.control()
  task.update()
  assert task.noted.any()
  task.reset()
  assert not task.noted.any()
