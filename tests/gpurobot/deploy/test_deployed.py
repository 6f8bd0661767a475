import pytest
import torch

from gpurobot.deploy.deployed import Controls, Deployed
from gpurobot.settings.algorithms import Activation, Precision, Recurrence
from tests.gpurobot.policies import DIMS, NUM_ENVS, make

VARIANTS = {
  "plain": {},
  "raw observations": {"normalize_obs": False},
  "choices": {"choices": (3, 2, 5)},
  "squashed, its noise depends on the state": {"squash": True, "state_std": True},
  "float64": {"precision": Precision.float64},
  "normalised layers": {"layer_norm": True, "activation": Activation.elu},
  "lstm": {"recurrent": Recurrence.lstm},
  "gru of its own": {"recurrent": Recurrence.gru, "shared": False},
}


@pytest.mark.parametrize("settings", VARIANTS.values(), ids=VARIANTS)
def test_it_acts_as_the_policy_does(settings):
  trained = make(**settings)
  deployed = Deployed(trained, None)
  state = torch.zeros(NUM_ENVS, deployed.state_width)
  for step in range(4):
    restart = torch.arange(NUM_ENVS) == step - 1
    obs = {group: 3 * torch.randn(NUM_ENVS, width) for group, width in DIMS.items()}
    state = state.masked_fill(restart.unsqueeze(1), 0)
    inputs = {"obs": obs["policy"], "state": state}
    outputs = dict(zip(deployed.outputs, deployed(*(inputs[name] for name in deployed.inputs)), strict=True))
    wanted = trained(obs, restart)
    torch.testing.assert_close(outputs["action"], wanted if "choices" in settings else wanted.clamp(-1, 1))
    state = outputs.get("next_state", state)
  assert ("next_state" in deployed.outputs) == ("state" in deployed.inputs) == ("recurrent" in settings)


def test_it_says_the_controls():
  controls = Controls(torch.tensor([1.0, 2.0]), torch.tensor([[0.0, 3.0], [0.5, 0.0], [0.0, 0.0]]))
  deployed = Deployed(make(), controls)
  action, ctrl = deployed(torch.randn(5, DIMS["policy"]))
  assert deployed.outputs == ["action", "ctrl"]
  torch.testing.assert_close(ctrl, torch.stack([1 + 0.5 * action[:, 1], 2 + 3 * action[:, 0]], 1))


def test_it_says_the_estimates_in_the_units_of_the_task():
  trained = make(estimate=["speed"])
  obs = {group: 3 * torch.randn(NUM_ENVS, width) for group, width in DIMS.items()}
  agent = trained.agent
  normal = agent.network.actor_input.estimate(agent.observations(obs)["policy"])
  shift, scale = (part[7:] for part in agent.observations.moments["critic"].unit)
  action, estimate = Deployed(trained, None)(obs["policy"])
  torch.testing.assert_close(estimate, normal * scale + shift)
  torch.testing.assert_close(action, trained(obs, torch.ones(NUM_ENVS, dtype=torch.bool)).clamp(-1, 1))


def test_a_linear_map_is_found():
  action = 2 * torch.rand(200, 3) - 1
  offset, gain = torch.tensor([0.9, -1.8, 40.0]), torch.tensor([0.5, 0.25, 33.5]).diag()
  found = Controls.fit(action, offset + action @ gain)
  assert found is not None
  torch.testing.assert_close(found.offset, offset)
  torch.testing.assert_close(found.gain, gain)


def test_choices_are_numbers_of_it():
  choice = torch.randint(5, (200, 1))
  found = Controls.fit(choice, 0.5 * choice.float() - 1)
  assert found is not None
  torch.testing.assert_close(found(torch.tensor([[0], [4]])), torch.tensor([[-1.0], [1.0]]))


@pytest.mark.parametrize("control", [
  lambda action: action.clamp(-0.9, 0.9),
  lambda action: action + 1e-3 * torch.randn_like(action),
  lambda action: action.cumsum(0),
  torch.zeros_like,
])  # fmt: skip
def test_what_is_no_linear_map_is_not_found(control):
  action = 2 * torch.rand(200, 3) - 1
  assert Controls.fit(action, control(action)) is None
  for few in (action[:7], action[:0]):  # they tell nothing
    assert Controls.fit(few, few) is None
