import pytest
import torch

from gpurobot.algorithm_config import PPOConfig, Precision, Recurrence
from gpurobot.learn.agent import Agent, Spaces, resolve

CPU = torch.device("cpu")
SPACES = Spaces({"policy": 5, "critic": 7}, 3, ())
SETTINGS = PPOConfig(hidden=[8], recurrent=Recurrence.gru, recurrent_units=4, precision=Precision.float32)
OBS = {group: torch.randn(6, width) for group, width in SPACES.obs_dims.items()}
RESTART = torch.tensor([True, False, False, True, False, False])


def test_a_saved_agent_acts_and_values_alike():
  one = Agent(SPACES, SETTINGS, CPU)
  one.observations.accumulate(OBS, torch.ones(6))
  one.observations.merge()
  saved = one.state_dict()
  assert Spaces.saved(saved) == SPACES
  other = Agent(Spaces.saved(saved), SETTINGS, CPU)
  state = one.start(6).normal_()
  before = other.act(OBS, state, RESTART)[0].mode()
  other.load_state_dict(saved)
  (policy, new), (same, also) = (agent.act(OBS, state, RESTART) for agent in (one, other))
  assert policy.mode().shape == (1, 6, 3)
  assert not torch.equal(before, policy.mode())
  assert torch.equal(policy.mode(), same.mode())
  assert torch.equal(new, also)
  assert torch.equal(one.evaluate(OBS, state, RESTART), other.evaluate(OBS, state, RESTART))


def test_what_was_before_an_episode_counts_for_nothing():
  agent = Agent(SPACES, SETTINGS, CPU)
  state = agent.start(6)
  fresh, dirty = (agent.evaluate(OBS, memory, RESTART) for memory in (state, state + 1))
  assert torch.equal(fresh == dirty, RESTART)


@pytest.mark.parametrize("precision", [Precision.float32, Precision.bf16, Precision.float64])
def test_a_given_precision_stays(precision):
  assert resolve(precision, CPU) is precision


def test_auto_is_bf16_only_where_the_processor_multiplies_in_it(monkeypatch):
  for able, expected in ((True, Precision.bf16), (False, Precision.float32)):
    monkeypatch.setattr(torch.cpu, "get_capabilities", lambda able=able: {"amx_bf16": able})
    assert resolve(Precision.auto, CPU) is expected
