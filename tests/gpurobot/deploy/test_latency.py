"""The search for the longest delay, with policies that fail as the tests say."""

from types import SimpleNamespace

import pytest

from gpurobot.deploy import latency
from gpurobot.export import Export
from gpurobot.settings.config import ConfigError
from tasks import cartpole, quadruped


@pytest.fixture
def found(monkeypatch):
  """Return a function that searches with figures that depend on the delay [s]."""

  def search(figures, task=quadruped, **settings):
    def load(wanted, num_envs):
      env = object.__new__(task.Task)
      env.dt = 0.02
      config = wanted.env or task.Config(**settings)
      return SimpleNamespace(config=SimpleNamespace(env=config), env=env, policy=config)

    def run(env, policy, rounds):
      values = figures(round(policy.action_delay, 3))
      return {name: SimpleNamespace(value=value) for name, value in values.items()}

    monkeypatch.setattr(latency, "load", load)
    monkeypatch.setattr(latency, "run", run)
    return latency.tolerated(Export(), lambda _: None)

  return search


@pytest.mark.parametrize(
  ("figures", "longest"),
  [
    (lambda delay: {"return": 100 - 1000 * (delay - 0.01)}, 0.01),
    (lambda delay: {"return": 100 - 200 * (delay - 0.01)}, 0.03),
    (lambda delay: {"return": -10 - 20 * (delay - 0.01)}, 0.03),
    (lambda delay: {"return": 100 if delay == 0.01 else 0, "success": 0.9 if delay < 0.06 else 0.85}, 0.05),
    (lambda _: {"return": 1.0}, 0.2),
  ],
  ids=["none", "return", "a negative return", "success before the return", "all"],
)
def test_the_longest_delay_is_the_last_before_a_fall_by_a_twentieth(figures, longest, found):
  assert found(figures) == pytest.approx(longest)


def test_a_task_without_a_delay_is_named(found):
  with pytest.raises(ConfigError, match=r"latency=true: the task has no env\.action_delay to try"):
    found(lambda _: {}, cartpole)
