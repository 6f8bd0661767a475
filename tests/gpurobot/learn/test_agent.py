import pytest
import torch

from gpurobot.learn.agent import Spaces, actor_critic, resolve
from gpurobot.learn.env import Image
from gpurobot.settings.algorithms import PPOConfig, Precision, Recurrence

CPU = torch.device("cpu")
SPACES = Spaces({"policy": 5, "critic": 7}, 3, (), names={"joint": ["hip", "knee"]})
SETTINGS = PPOConfig(hidden=[8], recurrent=Recurrence.gru, recurrent_units=4, precision=Precision.float32)
OBS = {group: torch.randn(6, width) for group, width in SPACES.obs_dims.items()}
RESTART = torch.tensor([True, False, False, True, False, False])


def value(agent, state):
  return agent.network.evaluate(agent.batch(OBS), state, RESTART.unsqueeze(0)).squeeze(0)


def test_a_saved_agent_acts_and_values_alike():
  one = actor_critic(SPACES, SETTINGS, CPU)
  one.observations.accumulate(OBS, torch.ones(6))
  one.observations.merge()
  saved = one.state_dict()
  assert Spaces.saved(saved) == SPACES
  other = actor_critic(Spaces.saved(saved), SETTINGS, CPU)
  state = one.start(6).normal_()
  before = other.act(OBS, state, RESTART)[0].mode()
  other.load_state_dict(saved)
  (policy, new), (same, also) = (agent.act(OBS, state, RESTART) for agent in (one, other))
  assert policy.mode().shape == (1, 6, 3)
  assert not torch.equal(before, policy.mode())
  assert torch.equal(policy.mode(), same.mode())
  assert torch.equal(new, also)
  assert torch.equal(value(one, state), value(other, state))


def test_what_was_before_an_episode_counts_for_nothing():
  agent = actor_critic(SPACES, SETTINGS, CPU)
  state = agent.start(6)
  fresh, dirty = (value(agent, memory) for memory in (state, state + 1))
  assert torch.equal(fresh == dirty, RESTART)


def test_images_that_an_agent_lacks_are_named():
  view = {"view": Image((20, 24, 3), "uint8", 0, 255, ("policy",))}
  large = {"view": view["view"]._replace(shape=(32, 32, 3))}
  agents = [actor_critic(SPACES._replace(images=images), SETTINGS, CPU) for images in ({}, view, large)]
  for state, own, message in (
    (0, 1, "its policy sees no images, and this one view 20x24x3 uint8"),
    (1, 0, "its policy sees view 20x24x3 uint8, and this one no images"),
    (2, 1, "its policy sees view 32x32x3 uint8, and this one view 20x24x3 uint8"),
  ):
    with pytest.raises(ValueError, match=f"^{message}$"):
      agents[own].load_state_dict(agents[state].state_dict())


@pytest.mark.parametrize("precision", [Precision.float32, Precision.bf16, Precision.float64])
def test_a_given_precision_stays(precision):
  assert resolve(precision, CPU) is precision


def test_auto_is_bf16_only_where_the_processor_multiplies_in_it(monkeypatch):
  for able, expected in ((True, Precision.bf16), (False, Precision.float32)):
    monkeypatch.setattr(torch.cpu, "get_capabilities", lambda able=able: {"amx_bf16": able})
    assert resolve(Precision.auto, CPU) is expected
  able = {"amx_bf16": False, "avx512_bf16": True, "avx512_fp16": True}  # Intel's without AMX
  monkeypatch.setattr(torch.cpu, "get_capabilities", lambda: able)
  assert resolve(Precision.auto, CPU) is Precision.float32
  able["avx512_fp16"] = False  # AMD's
  assert resolve(Precision.auto, CPU) is Precision.bf16
