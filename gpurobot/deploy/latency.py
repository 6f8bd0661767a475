"""Latency that a policy tolerates: the longest delay of its actions with which it still does its task."""

import dataclasses
from collections.abc import Callable

from gpurobot.deploy.figures import run
from gpurobot.deploy.trained import PolicySettings, load
from gpurobot.settings.config import ConfigError
from tasks.base import Task

EPISODES = 64
FALL = 0.05  # relative fall of the success, or without one of the return, that is too much
LONGEST = 0.2  # longest delay to be tried [s]


def tolerated(settings: PolicySettings, report: Callable[[str], None]) -> float:
  """Return the longest delay [s] before the first that is too long, in halves of a control step.

  The delays start at the settings' own, with which the others are compared; at most LONGEST. `report` gets a
  line about each. Raises ConfigError if the task has no `action_delay`.
  """
  base = load(settings, 1)
  config, env = base.config.env, base.env
  if not hasattr(config, "action_delay") or not isinstance(env, Task):
    raise ConfigError("latency=true: the task has no env.action_delay to try; leave latency=true out")
  wanted, delays = None, [float(config.action_delay)]
  while len(delays) == 1 or delays[-1] <= LONGEST:
    changed = dataclasses.replace(config, action_delay=delays[-1])
    trained = load(dataclasses.replace(settings, env=changed), EPISODES)
    figures = run(trained.env, trained.policy, 1)
    name = "success" if "success" in figures else "return"
    value = figures[name].value
    report(f"delay {1000 * delays[-1]:.3g} ms: {name} {value:.4g}")
    wanted = value if wanted is None else wanted
    if value < wanted - FALL * abs(wanted):
      break
    delays.append(delays[0] + len(delays) * env.dt / 2)
  return delays[-2]
