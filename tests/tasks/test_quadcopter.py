"""Quadcopter's numbers by hand, the forces of its rotors, and a controller that shows what can be reached."""

import math

import pytest
import torch

from physics.parity import MujocoSimulation
from tasks.shared import quat

WEIGHT = 0.028 * 9.81  # [N]
FULL = 0.16  # thrust of a rotor [N]
ARM, TORQUE = (
  0.0325,
  0.005965,
)  # of a rotor about each horizontal axis and, for each newton, about its own [m]


@pytest.fixture
def task(make_task):
  task = make_task("quadcopter", num_envs=2)
  task.reset()
  return task


def place(task, position, attitude=(1.0, 0.0, 0.0, 0.0), velocity=(0.0,) * 6, target=(0.0, 0.0, 2.0)):
  task.sim.qpos.copy_(torch.tensor([*position, *attitude]))
  task.sim.qvel.copy_(torch.tensor(velocity))
  task.target.copy_(torch.tensor(target))


def accelerations(task, thrusts):
  """Return what rotors at these thrusts do to a level drone at rest [m/s^2, rad/s^2]."""
  simulation = MujocoSimulation(task.model, 1, ["qacc"])
  simulation.act.copy_(torch.tensor([thrusts]))
  simulation.forward()
  return simulation.qacc[0]


def test_a_quarter_of_the_weight_on_each_rotor_hovers(task):
  assert accelerations(task, [WEIGHT / 4] * 4).abs().max() < 1e-4


@pytest.mark.parametrize(
  ("stronger", "torque"),  # torques about x, y, z for each newton more
  [
    ([1, 0, 0, 0], (ARM, -ARM, -TORQUE)),  # front left
    ([1, 1, 0, 0], (2 * ARM, 0, 0)),  # left
    ([0, 1, 1, 0], (0, 2 * ARM, 0)),  # back
    ([0, 1, 0, 1], (0, 0, 2 * TORQUE)),
    ([1, 1, 1, 1], (0, 0, 0)),
  ],
)
def test_rotors_turn_the_drone_as_their_places_and_directions_say(task, stronger, torque):
  acceleration = accelerations(task, [WEIGHT / 4 + 0.01 * more for more in stronger])
  expected = [
    0.01 * part / inertia for part, inertia in zip(torque, (16.6e-6, 16.6e-6, 29.3e-6), strict=True)
  ]
  assert acceleration[3:].tolist() == pytest.approx(expected, abs=1e-3)
  assert acceleration[2].item() == pytest.approx(0.01 * sum(stronger) / 0.028, abs=1e-3)


def test_thrust_follows_its_command_at_first_order(task):
  """A substep of 5 ms uses the rotors' state at its start: 0, then full (1 - e^(-t / tau))."""
  place(task, (0.0, 0.0, 2.0))
  for _ in range(5):
    task.step(torch.ones(2, 4))
  thrusts = [4 * FULL * (1 - math.exp(-0.005 * substep / 0.0375)) for substep in range(20)]
  speed = sum(0.005 * (thrust / 0.028 - 9.81) for thrust in thrusts)
  assert task.sim.qvel[0, 2].item() == pytest.approx(speed, rel=0.01)


def test_the_observation_is_in_the_drones_frame(task):
  quarter = (
    math.sqrt(0.5),
    0.0,
    0.0,
    math.sqrt(0.5),
  )  # facing +y: what is ahead in the world is to the right
  place(task, (1.0, 0.0, 2.0), quarter, (1.0, 2.0, 3.0, 4.0, 5.0, 6.0), target=(3.0, 0.0, 2.5))
  blocks = task.observe()["policy"]
  torch.testing.assert_close(blocks["target"][0], torch.tensor([0.0, -2.0, 0.5]))
  torch.testing.assert_close(blocks["velocity"][0], torch.tensor([2.0, -1.0, 3.0]))
  torch.testing.assert_close(blocks["angular_velocity"][0], torch.tensor([4.0, 5.0, 6.0]))
  torch.testing.assert_close(blocks["up"][0], torch.tensor([0.0, 0.0, 1.0]))
  place(task, (0.0, 0.0, 2.0), (math.cos(0.15), math.sin(0.15), 0.0, 0.0))  # rolled to the right
  up = torch.tensor([0.0, math.sin(0.3), math.cos(0.3)])
  torch.testing.assert_close(task.observe()["policy"]["up"][0], up)


def test_reward_by_hand(task):
  """Half a metre off, on its side, spinning at 2 rad/s, each action one half after none."""
  place(task, (0.5, 0.0, 2.0), (math.sqrt(0.5), math.sqrt(0.5), 0.0, 0.0), (0.0, 0.0, 0.0, 0.0, 0.0, 2.0))
  task.action.fill_(0.5)
  task.update()
  weighted = {name: task.reward_weights[name] * term[0].item() for name, term in task.reward().items()}
  expected = {"near": 0.8, "precise": 2 / 3.5, "upright": 0.8 / 2, "still": 0.8 / 5, "jitter": -0.2 * 0.25}
  assert weighted == pytest.approx(expected, rel=1e-5)
  task.update()  # the same action again
  assert task.reward()["jitter"].abs().max() == 0.0


def test_a_crash_and_a_flight_far_away_end_the_episode(task):
  place(task, (0.0, 0.0, 0.09))
  assert task.terminated().all()
  place(task, (0.0, 0.0, 0.11))
  assert not task.terminated().any()
  place(task, (5.1, 0.0, 2.0))
  assert task.terminated().all()


def test_success_is_near_and_slow(task):
  for x, speed, expected in ((0.09, 0.19, True), (0.11, 0.0, False), (0.0, 0.21, False)):
    place(task, (x, 0.0, 2.0), velocity=(speed, 0.0, 0.0, 0.0, 0.0, 0.0))
    assert task.success().tolist() == [expected] * 2


def test_the_target_is_elsewhere_every_four_seconds_and_the_critic_knows_when(make_task):
  task = make_task("quadcopter", num_envs=64, lost_distance=1e6, crash_height=-1e6)
  task.reset()
  for step in range(1, 405):
    before = task.target.clone()
    clock = task.step(torch.zeros(64, 4))["obs", "critic"][:, -1]
    assert task.target.ne(before).any(1).eq(step in {200, 400}).all()
    torch.testing.assert_close(clock, torch.full((64,), step % 200 * 0.02))
  offset = task.target - torch.tensor([0.0, 0.0, 2.0])
  assert offset.abs().max() <= 1.0
  assert offset.max() > 0.9
  assert offset.min() < -0.9


def fly(task):
  """Return the actions of a cascade of proportional and derivative laws: position, tilt, torques, thrusts."""
  rotation = quat.to_matrix(task.sim.qpos[:, 3:7])
  pull = 4.0 * (task.target - task.sim.qpos[:, :3]).clamp(-0.5, 0.5) - 3.0 * task.sim.qvel[:, :3]  # [m/s^2]
  pull[:, 2] += 9.81
  x, y, z = quat.to_body(rotation, pull).unbind(1)
  spin = task.sim.qvel[:, 3:6]
  # Turn the drone's z axis towards the pull: about x by -y / z, about y by x / z.
  turn = torch.stack([-y / z.clamp(min=4.0), x / z.clamp(min=4.0), torch.zeros_like(z)], 1)
  torque = torch.tensor([16.6e-6, 16.6e-6, 29.3e-6]) * (120.0 * turn - 18.0 * spin)  # [N m]
  roll, pitch, yaw = (torque / torch.tensor([4 * ARM, 4 * ARM, 4 * TORQUE])).unbind(1)
  lift = 0.028 * z / 4
  thrusts = torch.stack(
    [
      lift + roll - pitch - yaw,
      lift + roll + pitch + yaw,
      lift - roll + pitch - yaw,
      lift - roll - pitch + yaw,
    ],
    1,
  )
  return 2 * thrusts / FULL - 1


def test_a_simple_controller_reaches_every_target(make_task):
  task = make_task("quadcopter", num_envs=32, episode_steps=400)
  task.reset()
  for _ in range(399):
    assert not task.step(fly(task))["terminated"].any()
    if task.episode_steps[0] == 199:
      assert task.success().float().mean() > 0.9
  assert task.step(fly(task))["success"].float().mean() > 0.9


def test_a_target_in_the_room_can_be_commanded(task):
  assert task.commands.values is task.target
  low, high, unit = task.commands.ranges["z"]
  middle, room = task.config.middle_height, task.config.room
  assert (low, high, unit) == (pytest.approx(middle - room), pytest.approx(middle + room), "m")
