import pytest
import torch

from gpurobot.learn.encoder import SMALLEST, GroupInput, ImageEncoder, RandomShift, shifted
from gpurobot.learn.env import Image
from gpurobot.learn.network import ActorCritic, TwinCritic
from gpurobot.learn.random import Random
from gpurobot.settings.algorithms import Encoder, PPOConfig, Precision, SACConfig

VIEW = Image((24, 30, 3), "uint8", 0.0, 255.0, ("policy",))
DEPTH = Image((20, 20, 1), "float16", 0.5, 4.5, ("policy", "critic"))
IMAGES = {"view": VIEW, "depth": DEPTH}
KINDS = pytest.mark.parametrize("kind", list(Encoder))


def images(*batch: int) -> dict[str, torch.Tensor]:
  view = torch.randint(0, 256, (*batch, *VIEW.shape), dtype=torch.uint8)
  return {"view": view, "depth": (0.5 + 4 * torch.rand(*batch, *DEPTH.shape)).half()}


def observations(*batch: int, dtype: torch.dtype = torch.float32) -> dict[str, torch.Tensor]:
  numbers = {group: torch.randn(*batch, width, dtype=dtype) for group, width in DIMS.items()}
  return numbers | images(*batch)


DIMS = {"policy": 2, "critic": 4}


@KINDS
@pytest.mark.parametrize("image", list(IMAGES))
def test_features_are_those_of_the_image_in_its_range(kind, image):
  torch.manual_seed(0)
  space, raw = IMAGES[image], images(2, 3)[image]
  encoder = ImageEncoder(space, kind, 8).double()
  found = encoder(raw, torch.float64)
  assert found.shape == (2, 3, 8)
  unit = (raw.double() - space.low) / (space.high - space.low)
  assert 0 <= float(unit.min()) < 0.1
  assert 0.9 < float(unit.max()) <= 1
  x = unit.flatten(0, 1).permute(0, 3, 1, 2).contiguous()  # as torch's layers have it elsewhere
  features = encoder.convolutions(x).permute(0, 2, 3, 1).flatten(1)
  torch.testing.assert_close(found.flatten(0, 1), encoder.output(features).relu(), rtol=1e-9, atol=1e-12)


@KINDS
def test_each_image_has_features_of_its_own(kind):
  """No number of a sample depends on the others, as it would with normalisation over a batch."""
  torch.manual_seed(0)
  encoder, raw = ImageEncoder(VIEW, kind, 8), images(5)["view"]
  alone = torch.cat([encoder(one, torch.float32) for one in raw.split(1)])
  torch.testing.assert_close(encoder(raw, torch.float32), alone, rtol=1e-4, atol=1e-5)
  assert len(alone.unique(dim=0)) == 5


@pytest.mark.parametrize(("side", "first"), [(18, (4, 2)), (63, (4, 2)), (64, (8, 4)), (84, (8, 4))])
def test_the_first_layer_of_nature_suits_the_size(side, first):
  encoder = ImageEncoder(Image((side, side, 4), "uint8", 0, 255, ("policy",)), Encoder.nature, 8)
  layer = encoder.convolutions[0]
  assert (layer.kernel_size[0], layer.stride[0]) == first
  if side == 84:  # as in the paper: 7 x 7 x 64 numbers
    assert encoder.output.in_features == 3136


@KINDS
def test_a_smaller_image_is_too_small(kind):
  side = SMALLEST[kind]
  ImageEncoder(Image((side, 40, 1), "uint8", 0, 255, ("policy",)), kind, 8)
  if kind is Encoder.nature:  # the other runs on, on a single pixel
    with pytest.raises(RuntimeError, match="Kernel size"):
      ImageEncoder(Image((side - 1, 40, 1), "uint8", 0, 255, ("policy",)), kind, 8)


def test_a_group_gets_its_numbers_and_the_features_of_its_images():
  torch.manual_seed(0)
  settings = PPOConfig(encoder_features=8)
  policy = GroupInput("policy", 2, IMAGES, settings)
  critic = GroupInput("critic", 4, IMAGES, settings, policy)
  own = GroupInput("critic", 4, IMAGES, settings)
  obs = observations(3)
  assert (policy.width, critic.width) == (2 + 8 + 8, 4 + 8)
  assert torch.equal(policy(obs)[:, :2], obs["policy"])
  assert torch.equal(critic(obs)[:, 4:], policy(obs)[:, 10:])  # the same encoder
  assert not torch.equal(own(obs)[:, 4:], policy(obs)[:, 10:])
  blind = GroupInput("policy", 2, {}, settings)
  assert blind(obs) is obs["policy"]
  assert not [*blind.parameters()]
  seeing = GroupInput("policy", 0, IMAGES, settings)
  assert seeing(obs | {"policy": obs["policy"][:, :0]}).shape == (3, 16)


@pytest.mark.parametrize("shared", [True, False])
@pytest.mark.parametrize("recurrent", ["none", "gru"])
def test_actor_and_critic_share_encoders_if_they_may(shared, recurrent):
  torch.manual_seed(0)
  settings = PPOConfig(
    hidden=[8],
    encoder_features=8,
    encoder_shared=shared,
    recurrent=recurrent,
    recurrent_units=4,
    precision=Precision.float64,
  )
  network = ActorCritic(DIMS, 2, (), settings, IMAGES)
  obs, restart = observations(2, 3, dtype=torch.float64), torch.zeros(2, 3, dtype=torch.bool)
  state = torch.randn(3, network.state_width).double()
  policy, value, _ = network(obs, state, restart)
  assert torch.equal(network.act(obs, state, restart)[0].mean, policy.mean)
  assert torch.equal(network.evaluate(obs, state, restart), value.value)
  value.value.sum().backward()
  view, depth = network.actor_input.encoders
  assert view.output.weight.grad is None  # the critic does not see it
  assert (depth.output.weight.grad is not None) == shared


def test_bf16_rounds_and_no_more():
  torch.manual_seed(0)
  exact, rough = (
    ActorCritic(DIMS, 2, (), PPOConfig(hidden=[8], encoder_features=8, precision=precision), IMAGES)
    for precision in (Precision.float32, Precision.bf16)
  )
  rough.load_state_dict(exact.state_dict())
  obs, state, restart = observations(1, 64), torch.zeros(64, 0), torch.zeros(1, 64, dtype=torch.bool)
  rounded = {name: x.to(rough.input_dtype) if name in DIMS else x for name, x in obs.items()}
  pairs = ((exact, obs), (rough, rounded))
  one, other = (net(seen, state, restart)[1].value.detach() for net, seen in pairs)
  assert other.dtype is torch.float32
  assert 0 < float((one - other).abs().max()) < 0.05 * float(one.abs().max())


def test_twin_critics_see_through_one_encoder():
  torch.manual_seed(0)
  critics = TwinCritic(DIMS, 2, SACConfig(critic_hidden=[8], encoder_features=8), torch.float64, IMAGES)
  obs = observations(3, dtype=torch.float64)
  assert critics(obs, torch.zeros(3, 2)).value.shape == (2, 3)
  assert critics.input.images == ["depth"]
  assert len([name for name, _ in critics.named_parameters() if "convolutions.0.weight" in name]) == 1


def test_a_shift_moves_and_repeats_the_edge():
  image = torch.arange(12, dtype=torch.uint8).view(1, 3, 4, 1).repeat(3, 1, 1, 1)
  moved = shifted(image, torch.tensor([[0, 0], [1, 0], [0, -2]]))[..., 0]
  assert torch.equal(moved[0], image[0, ..., 0])
  assert moved[1].tolist() == [[0, 1, 2, 3], [0, 1, 2, 3], [4, 5, 6, 7]]
  assert moved[2].tolist() == [[2, 3, 3, 3], [6, 7, 7, 7], [10, 11, 11, 11]]


def test_every_shift_is_drawn_equally_often_and_moves_all_frames_alike():
  count, pixels = 9000, 1
  image = torch.zeros(count, 5, 5, 2, dtype=torch.uint8)
  image[:, 2, 2] = 1
  RandomShift(["view"], pixels)({"view": image}, Random(0, count).uniform)
  assert torch.equal(image[..., 0], image[..., 1])
  drawn = image[..., 0].float().mean(0)
  assert float(drawn[[0, 4]].sum() + drawn[:, [0, 4]].sum()) == 0
  torch.testing.assert_close(drawn[1:4, 1:4], torch.full((3, 3), 1 / 9), rtol=0, atol=0.015)


def test_ranks_shift_as_one_does():
  image = torch.randint(0, 256, (8, 6, 6, 1), dtype=torch.uint8)
  whole, halves = image.clone(), [part.clone() for part in image.split(4)]
  shift = RandomShift(["view"], 2)
  shift({"view": whole}, Random(3, 8).uniform)
  for rank, half in enumerate(halves):
    shift({"view": half}, Random(3, 4, 4 * rank).uniform)
  assert torch.equal(whole, torch.cat(halves))
  assert not torch.equal(whole, image)
  following, same = image.clone(), image.clone()
  shift({"view": following}, Random(3, 8).uniform, "the next ")
  RandomShift(["view"], 0)({"view": same}, Random(3, 8).uniform)
  assert not torch.equal(whole, following)
  assert torch.equal(image, same)
