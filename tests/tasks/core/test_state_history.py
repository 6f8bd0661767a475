from types import SimpleNamespace

import pytest
import torch

from tasks.core import state_history
from tasks.core.state_history import StateHistory

LENGTH = 4


def simulation(num_envs: int = 3) -> SimpleNamespace:
  """Two positions, a velocity, a control, and one field of the model that varies."""
  fields = {"qpos": 2, "qvel": 1, "ctrl": 1, "body_mass": 2}
  views = {name: torch.zeros(width, num_envs).T for name, width in fields.items()}
  return SimpleNamespace(model=SimpleNamespace(nmocap=0, varied=("body_mass",)), **views)


def run(kept: StateHistory, sim: SimpleNamespace, steps: range, diverged=(), ended=()) -> None:
  """Let step t lead environment e to qpos (t, e), with reward -t; pairs (t, e) tell what happens when."""
  for t in steps:
    sim.qpos[:, 0], sim.qpos[:, 1] = t, torch.arange(3.0)
    valid, ends = torch.ones(3, dtype=torch.bool), torch.zeros(3, dtype=torch.bool)
    for step, env in diverged:
      valid[env] &= step != t
    for step, env in ended:
      ends[env] |= step == t
    sim.qpos[~valid] = torch.nan
    kept.add(torch.full((3,), -float(t)), valid, ends)


def test_the_last_states_of_one_that_diverged_are_kept_the_oldest_first():
  sim = simulation()
  kept = StateHistory(sim, 3, LENGTH)
  sim.body_mass[1] = torch.tensor([5.0, 6.0])
  run(kept, sim, range(7), diverged=[(6, 1)])
  sim.body_mass[1] = 0.0  # drawn anew by the reset
  run(kept, sim, range(7, 12))
  (found,) = kept.take()
  assert (int(found["env"]), int(found["steps"])) == (1, LENGTH)
  assert found["states", "qpos"][:3].tolist() == [[3, 1], [4, 1], [5, 1]]
  assert found["states", "qpos"][3].isnan().all()
  assert found["reward"].tolist() == [-3, -4, -5, -6]
  assert found["varied", "body_mass"].tolist() == [5, 6]
  assert found["states", "qvel"].shape == (LENGTH, 1)


def test_states_before_the_episode_do_not_count():
  sim = simulation()
  kept = StateHistory(sim, 3, LENGTH)
  run(kept, sim, range(9), diverged=[(8, 0), (8, 2)], ended=[(6, 0), (8, 2)])
  first, last = kept.take()
  assert (int(first["env"]), int(first["steps"])) == (0, 2)
  assert first["states", "qpos"][-2, 0] == 7
  assert (int(last["env"]), int(last["steps"])) == (2, LENGTH)


def test_one_that_diverges_again_before_a_look_shows_the_first_time_and_then_the_next():
  sim = simulation()
  kept = StateHistory(sim, 3, LENGTH)
  assert len(kept.take()) == 0
  run(kept, sim, range(8), diverged=[(2, 1), (5, 1)])
  (found,) = kept.take()
  assert int(found["steps"]) == 3
  assert found["states", "qpos"][-3:-1, 0].tolist() == [0, 1]
  run(kept, sim, range(8, 10), diverged=[(9, 1)])
  (found,) = kept.take()
  assert int(found["steps"]) == 2
  assert found["states", "qpos"][-2, 0] == 8
  assert len(kept.take()) == 0


@pytest.mark.parametrize("most", [1, 2])
def test_of_many_some_are_shown(monkeypatch, most):
  monkeypatch.setattr(state_history, "MOST", most)
  sim = simulation()
  kept = StateHistory(sim, 3, LENGTH)
  run(kept, sim, range(3), diverged=[(1, env) for env in range(3)])
  assert len(kept.take()) == most
  assert len(kept.take()) == 0


def test_after_a_restart_what_was_before_does_not_count():
  sim = simulation()
  kept = StateHistory(sim, 3, LENGTH)
  run(kept, sim, range(3), diverged=[(2, 0)])
  kept.restart()
  assert len(kept.take()) == 0
  run(kept, sim, range(3, 5), diverged=[(4, 1)])
  (found,) = kept.take()
  assert (int(found["env"]), int(found["steps"])) == (1, 2)
