import math

import pytest
import torch

from tasks import quadruped
from tasks.shared.action_path import ActionFilter, steps
from tests.tasks import in_mujoco

SCALE = torch.tensor([0.5, 0.25])


def filtered(cutoff, rate, actions):
  wanted, now, found = ActionFilter.of(cutoff, rate, 0.02, SCALE), torch.zeros(1, 2), []
  for action in actions:
    now = wanted(now, torch.full((1, 2), action))
    found.append(now[0].tolist())
  return found


def test_a_low_pass_approaches_a_step_exponentially():
  found = filtered(2.0, 0.0, [1.0] * 5)
  expected = [1 - math.exp(-2 * math.pi * 2.0 * 0.02 * (step + 1)) for step in range(5)]
  assert found == [pytest.approx([value] * 2) for value in expected]


def test_a_limit_of_the_rate_is_one_of_the_targets_speed():
  found = filtered(0.0, 5.0, [1.0] * 4 + [-1.0])  # 0.1 rad in a step
  assert found == [pytest.approx(each) for each in ([0.2, 0.4], [0.4, 0.8], [0.6, 1], [0.8, 1], [0.6, 0.6])]


def test_both_filters_act_at_once():
  share = 1 - math.exp(-2 * math.pi * 2.0 * 0.02)
  (found,) = filtered(2.0, 5.0, [1.0])
  assert found == pytest.approx([0.2, share])


def test_a_delay_takes_as_many_control_steps_as_it_reaches_into():
  assert [steps(delay, 0.02) for delay in (0.0, 0.02, 0.0201, 0.06)] == [1, 1, 2, 3]


def test_motors_follow_the_filtered_action_and_the_policy_observes_its_own():
  task = in_mujoco.build(quadruped, 8, action_lowpass=2.0, action_rate=5.0, action_delay=0.0)
  task.reset()
  task.step(torch.ones(8, 12))
  share = 1 - math.exp(-2 * math.pi * 2.0 * 0.02)
  sent = min(share, 0.2)
  torch.testing.assert_close(task.sim.ctrl.float(), task.stance + 0.5 * torch.full((8, 12), sent))
  assert task.observe()["policy"]["action"].eq(1.0).all()
  assert task.change.eq(1.0).all()
