import pytest
import torch
from tensordict import TensorDict

from gpurobot.algorithm_config import Storage
from gpurobot.learn.normalize import Moments
from gpurobot.learn.random import Random
from gpurobot.learn.replay_buffer import Replay, replay_bytes
from gpurobot.learn.stored_obs import KINDS, StoredObs, decode, encode
from tests.gpurobot.toy import Config, Task

LENGTH, ENVS = 8, 20
CPU = torch.device("cpu")
# Largest error [standard deviations] at a deviation z: half a unit in the last place, or half a level.
ERRORS = {
  torch.float16: lambda z: 2**-11 * z.abs() + 2**-25,
  torch.bfloat16: lambda z: 2**-8 * z.abs(),
  torch.uint8: lambda z: 0.025 * (0.25 + z.square()).sqrt(),
}


@pytest.fixture
def env() -> Task:
  env = Task(Config(episode_steps=3), ENVS, random=Random(0, ENVS))
  env.obs_names = {"policy": ["position"] * 2, "critic": ["position", "far", "position"]}
  return env


@pytest.fixture
def moments(env) -> dict[str, Moments]:
  """Moments of observations far from 0, whose columns have different spreads."""
  found = {}
  for group, width in env.obs_dims.items():
    found[group] = Moments(width, CPU)
    found[group].accumulate(sample(width), torch.ones(ENVS))
    found[group].merge()
  return found


def sample(width: int) -> torch.Tensor:
  torch.manual_seed(width)
  return 50 + torch.randn(ENVS, width) * 10.0 ** torch.arange(width)


def written(env, storage, blocks=(), moments=None) -> tuple[StoredObs, TensorDict, dict[str, torch.Tensor]]:
  """Write observations to a row; return the codec, its memory and the observations."""
  stored = StoredObs(env, storage, blocks)
  memory = TensorDict(stored.allocate(LENGTH), batch_size=[LENGTH])
  obs = {group: sample(width) for group, width in env.obs_dims.items()}
  stored.write(memory, torch.tensor([5]), obs, moments or {})
  return stored, memory, obs


def read(stored: StoredObs, memory: TensorDict) -> dict[str, torch.Tensor]:
  return stored.read(memory, torch.full((ENVS,), 5), torch.arange(ENVS))


@pytest.mark.parametrize("kind", ERRORS)
def test_a_deviation_is_kept_as_closely_as_its_type_can(kind):
  z = torch.cat([torch.linspace(-100, 100, 20_001), torch.linspace(-1, 1, 2001)])
  found = decode(encode(z, kind))
  assert ((found - z).abs() <= ERRORS[kind](z)).all()
  assert encode(z, kind).dtype is kind
  assert float(decode(encode(torch.zeros(1), kind))) == 0


@pytest.mark.parametrize("kind", ERRORS)
def test_what_is_out_of_range_stays_finite(kind):
  most = 100 if kind is torch.uint8 else torch.finfo(kind).max
  found = decode(encode(torch.tensor([-torch.inf, torch.inf]), kind))
  torch.testing.assert_close(found, torch.tensor([-1.0, 1.0]) * most, rtol=4e-3, atol=0)


def test_only_uint8_has_no_nan():
  kept = torch.cat([decode(encode(torch.tensor([torch.nan]), kind)) for kind in ERRORS])
  torch.testing.assert_close(kept, torch.tensor([torch.nan, torch.nan, 0.0]), equal_nan=True)


def test_float32_is_kept_bit_by_bit_without_moments(env):
  stored, memory, obs = written(env, Storage.float32)
  assert set(memory.keys()) == {"obs"}
  assert all(torch.equal(found, obs[group]) for group, found in read(stored, memory).items())


@pytest.mark.parametrize("storage", [Storage.float16, Storage.bf16, Storage.uint8])
def test_raw_observations_come_back(env, moments, storage):
  """The error is in standard deviations, so that an offset of 50 takes no digits."""
  stored, memory, obs = written(env, storage, moments=moments)
  for group, found in read(stored, memory).items():
    shift, scale = moments[group].unit
    z = (obs[group] - shift) / scale
    assert ((found - obs[group]).abs() <= 1.01 * ERRORS[KINDS[storage]](z) * scale + 1e-5).all()
    assert not torch.equal(found, obs[group])


def test_later_moments_do_not_change_what_is_kept(env, moments):
  stored, memory, _ = written(env, Storage.uint8, moments=moments)
  before = read(stored, memory)
  for own in moments.values():
    own.rescale(torch.tensor([10.0], dtype=torch.float64))
  after = read(stored, memory)
  assert all(torch.equal(after[group], found) for group, found in before.items())


def test_only_the_named_blocks_are_rounded(env, moments):
  stored, memory, obs = written(env, Storage.uint8, ["far"], moments)
  found = read(stored, memory)
  assert torch.equal(found["policy"], obs["policy"])
  assert (found["critic"] == obs["critic"]).all(0).tolist() == [True, False, True]
  assert memory["small", "critic"].shape == (LENGTH, ENVS, 1)
  assert "policy" not in memory["small"].keys()  # noqa: SIM118


@pytest.mark.parametrize("storage", Storage)
@pytest.mark.parametrize("blocks", [[], ["far"]])
def test_bytes_are_those_of_the_memory(env, storage, blocks):
  stored = StoredObs(env, storage, blocks)
  replay = Replay(env, 1, LENGTH, (torch.float32, torch.float32), stored)
  parts = [*replay.memory.values(True, True), *replay.final_obs.values()]
  needed = sum(part.numel() * part.element_size() for part in parts)
  assert replay_bytes(env, LENGTH, torch.float32, stored) == needed
