import pytest
import torch

from tasks.shared.sensor_errors import MOST_LOST

SMALL = 1e-5


def read(task):
  """What the policy reads, and what is true."""
  return task.read(task.measure()), task.measure()


def error(task, sensor):
  readings, true = read(task)
  return readings[sensor] - true[sensor]


def walk(task, steps):
  for action in 2 * torch.rand(steps, task.num_envs, task.num_actions) - 1:
    task.step(0.3 * action)


def quadruped(make_task, **settings):
  quiet = dict.fromkeys(("noise_angular_velocity", "noise_gravity", "noise_angles", "noise_speeds"), 0.0)
  task = make_task("quadruped", 64, training=True, see_velocity=False, push_seconds=1e6, **quiet, **settings)
  torch.manual_seed(0)
  task.reset()
  return task


def test_the_policy_reads_the_errors_and_the_critic_does_not(make_task):
  task = quadruped(make_task, encoder_bias=0.02)
  walk(task, 3)
  seen, (readings, true) = task.observe(), read(task)
  assert torch.equal(seen["policy"]["angles"], readings["angles"] - task.stance)
  assert torch.equal(seen["critic"]["angles"], true["angles"] - task.stance)
  assert not torch.equal(readings["angles"], true["angles"])
  for name in ("speeds", "gravity", "angular_velocity", "command", "action"):
    assert torch.equal(readings[name], true[name])


def test_a_servo_shares_the_zero_of_its_encoder(make_task):
  task = quadruped(make_task, encoder_bias=0.02)
  task.action.zero_()
  task.sent.zero_()
  torch.testing.assert_close(task.stance - task.targets()[:, 0], error(task, "angles"), atol=SMALL, rtol=0)


@pytest.mark.parametrize(("setting", "sensor"), [
  ("gyro_bias", "angular_velocity"), ("tilt_bias", "gravity"), ("encoder_bias", "angles"),
])  # fmt: skip
def test_a_bias_lasts_an_episode_and_is_drawn_within_its_bound(setting, sensor, make_task):
  task = quadruped(make_task, episode_steps=4, **{setting: 0.02})
  task.episode_steps.zero_()
  walk(task, 1)
  first = error(task, sensor)
  walk(task, 2)
  second = error(task, sensor)
  torch.testing.assert_close(first, second, atol=SMALL, rtol=0)
  assert first.abs().max() < 0.02
  assert first[:, :2].std() > 0.005
  walk(task, 1)  # the time is over
  third = error(task, sensor)
  assert (third[:, :2] - second[:, :2]).abs().min(1).values.max() > 1e-4


def test_the_bias_of_the_gyro_walks(make_task):
  task = quadruped(make_task, gyro_drift=0.1)
  task.episode_steps.zero_()
  walk(task, 25)
  drift = error(task, "angular_velocity")
  wanted = 0.1 * (25 * task.dt) ** 0.5
  assert 0.6 * wanted < float(drift.std()) < 1.5 * wanted


def test_angles_have_the_resolution_of_the_encoders(make_task):
  task = quadruped(make_task, encoder_step=0.01)
  readings, true = read(task)
  ticks = readings["angles"] / 0.01
  torch.testing.assert_close(ticks, ticks.round(), atol=1e-3, rtol=0)
  assert 0 < (readings["angles"] - true["angles"]).abs().max() <= 0.005 + SMALL


@pytest.mark.parametrize(("setting", "late", "timely"), [
  ("imu_latency", ("angular_velocity", "gravity"), ("angles", "speeds")),
  ("encoder_latency", ("angles", "speeds"), ("angular_velocity", "gravity")),
])  # fmt: skip
def test_readings_are_late_by_a_fraction_of_steps(setting, late, timely, make_task):
  dt = quadruped(make_task).dt
  task = quadruped(make_task, **{setting: 1.5 * dt})
  task.episode_steps.zero_()
  history = [task.measure()]
  for name in late:  # nothing older is known
    torch.testing.assert_close(task.read(history[0])[name], history[0][name])
  for _ in range(3):
    walk(task, 1)
    history.append({name: value.clone() for name, value in task.measure().items()})
  readings = task.read(history[-1])
  kept = ~task.known_readings.lt(2)  # environments in the same episode
  assert kept.sum() > task.num_envs / 2
  for name in late:
    wanted = (history[-2][name] + history[-3][name]) / 2
    torch.testing.assert_close(readings[name][kept], wanted[kept])
    assert not torch.allclose(readings[name], history[-1][name])
  for name in timely:
    assert torch.equal(readings[name], history[-1][name])


def test_the_age_of_readings_changes_by_the_jitter(make_task):
  task = quadruped(make_task, encoder_latency=0.01, latency_jitter=0.01)
  task.episode_steps.zero_()
  walk(task, 3)
  late, now = read(task)
  walk_back = task.past_readings[:, 0, -24:-12]  # angles of the step before
  off = (late["angles"] - now["angles"]).norm(dim=1) / (walk_back - now["angles"]).norm(dim=1)
  assert off.min() >= 0
  assert off.max() <= 1 + SMALL
  assert off.std() > 0.1


def test_a_lost_packet_leaves_the_last_reading(make_task):
  task = quadruped(make_task, packet_loss=0.5)
  task.episode_steps.zero_()
  walk(task, 1)
  before = {name: value.clone() for name, value in task.read(task.measure()).items()}
  same = torch.ones(task.num_envs, dtype=torch.bool)
  walk(task, 1)
  after, true = read(task)
  lost = task.missed > 0
  assert 0.2 < float(lost.float().mean()) < 0.8
  for group, name in ((0, "gravity"), (1, "angles")):
    same = (after[name] == before[name]).all(1)
    assert torch.equal(same, lost[:, group])
    assert torch.equal((after[name] == true[name]).all(1), ~lost[:, group])


def test_no_more_packets_than_a_few_are_lost_in_a_row(make_task):
  task = quadruped(make_task, packet_loss=1.0)
  task.episode_steps.zero_()
  walk(task, MOST_LOST + 3)
  assert float(task.missed.max()) == MOST_LOST


def test_an_evaluation_has_no_errors(make_task):
  task = make_task("quadruped", training=False, encoder_bias=0.1, imu_latency=0.02)
  task.reset()
  walk(task, 2)
  groups = task.observe()
  assert all(torch.equal(block, groups["critic"][name]) for name, block in groups["policy"].items())
