import pytest
import torch

from gpurobot.deploy.deployed import Controls, Deployed
from gpurobot.deploy.from_sensors import FromSensors
from gpurobot.settings.algorithms import Recurrence
from tasks.shared.action_path import ActionFilter
from tests.gpurobot.policies import ACTIONS, make

LENGTH, STEPS, ANGLES = 2, 5, 4
JOINTS = [f"joint {i}" for i in range(ANGLES)]
NAMES = [f"action {i}" for i in range(ACTIONS)]


def facts(length):
  """Return a manifest with scaled angles in reverse order, and the last action."""
  angles = [
    {"sensor": "angles", "column": name, "scale": 0.5 + i, "offset": 0.1 * i} for i, name in enumerate(JOINTS)
  ]
  action = [{"sensor": "action", "column": name, "scale": 1.0, "offset": 0.0} for name in NAMES]
  return {
    "sensors": [{"name": "angles", "columns": JOINTS}, {"name": "action", "columns": NAMES}],
    "observation": {"columns": [*angles[::-1], *action], "history, the oldest first": length},
  }


@torch.no_grad()
@pytest.mark.parametrize("form", [{}, {"recurrent": Recurrence.gru}])
@pytest.mark.parametrize("limits", [None, (2.0, 5.0)])
def test_sensors_are_observed_with_the_last_action_and_history(form, limits):
  """The first observation fills the history; a state of zeros starts an episode anew."""
  controls = Controls(torch.zeros(2), torch.ones(ACTIONS, 2))
  wanted = limits and ActionFilter.of(*limits, 0.02, torch.ones(ACTIONS))
  policy = Deployed(make({"policy": LENGTH * (ANGLES + ACTIONS), "critic": 9}, **form), controls, wanted)
  own = FromSensors(policy, facts(LENGTH))
  assert list(own.inputs) == ["angles", "state"]
  generator = torch.Generator().manual_seed(0)
  scale, offset = 0.5 + torch.arange(ANGLES), 0.1 * torch.arange(ANGLES)
  for _ in range(2):
    state, inner, last = own.inputs["state"].repeat(3, 1), torch.zeros(3, policy.state_width), 0.0
    past = []
    for _ in range(STEPS):
      angles = torch.randn(3, ANGLES, generator=generator)
      latest = torch.cat([(scale * (angles - offset)).flip(1), torch.zeros(3, ACTIONS) + last], 1)
      past = [*(past or [latest]), latest][-LENGTH:]
      found = dict(zip(own.outputs, own(angles, state), strict=True))
      given = [torch.cat(past, 1), *([inner] if policy.state_width else [])]
      known = dict(zip(policy.outputs, policy(*given), strict=True))
      state, inner, last = found["next_state"], known.get("next_state", inner), known["action"]
      torch.testing.assert_close(found["obs"], latest)
      for name in ("action", "ctrl"):
        torch.testing.assert_close(found[name], known[name])
