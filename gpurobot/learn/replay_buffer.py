"""Replay buffer: a ring of the last steps of each environment, and the batches drawn from it."""

import math
from collections.abc import Callable, Collection, Iterator, Mapping
from typing import Any, NamedTuple

import torch
from tensordict import TensorDict, TensorDictBase
from torch import Tensor

from gpurobot.learn.env import VecEnv, images_of
from gpurobot.learn.normalize import OUTLIER, Moments
from gpurobot.learn.random import Random
from gpurobot.settings.algorithms import Storage

KINDS = {
  Storage.float32: torch.float32,
  Storage.float16: torch.float16,
  Storage.bf16: torch.bfloat16,
  Storage.uint8: torch.uint8,
}
LEVELS = 127  # of uint8 on each side of the mean
NEAR = 0.5  # the levels of uint8 are even up to about here, and spread out beyond [standard deviations]
SPREAD = math.asinh(OUTLIER / NEAR)  # so that the last level is at OUTLIER


def encode(deviation: Tensor, kind: torch.dtype) -> Tensor:
  """Return deviations [...], in standard deviations, as numbers of a type in KINDS; nan is 0 in uint8."""
  if kind is torch.uint8:
    level = (deviation.nan_to_num(0) / NEAR).asinh_().mul_(LEVELS / SPREAD).clamp_(-LEVELS, LEVELS)
    return level.round_().add_(LEVELS).to(kind)
  most = torch.finfo(kind).max
  return deviation.clamp(-most, most).to(kind)


def decode(number: Tensor) -> Tensor:
  """Return the deviations [...], float32, that encoded numbers stand for."""
  if number.dtype is torch.uint8:
    return number.to(torch.float32).sub_(LEVELS).mul_(SPREAD / LEVELS).sinh_().mul_(NEAR)
  return number.to(torch.float32)


def take(memory: Tensor, rows: Tensor, envs: Tensor) -> Tensor:
  """Return memory[rows, envs] of a tensor [length, num_envs, ...]; one flat index takes half the time."""
  index = rows * memory.shape[1] + envs
  return memory.flatten(0, 1).index_select(0, index.flatten()).view(*index.shape, *memory.shape[2:])


class StoredObs:
  """Codec of observations: which columns of each group lie in the ring in fewer bits, and how.

  Those are kept as deviations from the mean in standard deviations, by the moments of that time; each row
  has its moments beside it. All ranks have the same moments, and so the same numbers. Images lie there as
  they are.
  """

  def __init__(self, env: VecEnv, storage: Storage = Storage.float32, blocks: Collection[str] = ()) -> None:
    """Keep the named blocks of observations in the type `storage`, or all if none are named."""
    self.kind, self._num_envs, self._device = KINDS[storage], env.num_envs, env.device
    self.images, names = images_of(env), env.obs_names
    self._columns: dict[str, tuple[Tensor, Tensor]] = {}  # by group: those kept as they are, and the others
    self._order: dict[str, Tensor] = {}  # by group: where each column is among the two, one after the other
    for group, width in env.obs_dims.items():
      rounded = storage is not Storage.float32
      chosen = [rounded and (not blocks or name in blocks) for name in names.get(group, [""] * width)]
      columns = sorted(range(width), key=chosen.__getitem__)  # those kept as they are first
      order = sorted(range(width), key=columns.__getitem__)
      raw, small = torch.tensor(columns, device=env.device).split([width - sum(chosen), sum(chosen)])
      self._columns[group], self._order[group] = (raw, small), torch.tensor(order, device=env.device)

  def allocate(self, length: int) -> dict[str, Any]:
    """Return zeros for `length` rows.

    obs: by group [length, num_envs, columns kept as they are], and images. small: by group [length, num_envs,
    others]. unit: by group [length, 2, others], mean and standard deviation. A group without others has no
    such entry.
    """
    memory: dict[str, dict[str, Tensor]] = {"obs": {}, "small": {}, "unit": {}}
    for group, (raw, small) in self._columns.items():
      memory["obs"][group] = self._zeros(length, self._num_envs, len(raw))
      if len(small):
        memory["small"][group] = self._zeros(length, self._num_envs, len(small), kind=self.kind)
        memory["unit"][group] = self._zeros(length, 2, len(small))
    for name, image in self.images.items():
      memory["obs"][name] = self._zeros(length, self._num_envs, *image.shape, kind=image.dtype)
    return {name: part for name, part in memory.items() if part}

  @property
  def row_bytes(self) -> int:
    """Memory of a row [bytes]."""
    columns = [(len(raw), len(small)) for raw, small in self._columns.values()]
    numbers = sum(
      self._num_envs * (4 * raw + self.kind.itemsize * small) + 8 * small for raw, small in columns
    )
    return numbers + self._num_envs * sum(image.bytes for image in self.images.values())

  def _zeros(self, *shape: int, kind: torch.dtype = torch.float32) -> Tensor:
    return torch.zeros(shape, dtype=kind, device=self._device)

  def write(
    self, memory: TensorDict, row: Tensor, obs: Mapping[str, Tensor], moments: Mapping[str, Moments]
  ) -> None:
    """Write raw groups [num_envs, width] and images to a row [1]."""
    for name in self.images:
      memory["obs", name].index_copy_(0, row, obs[name].unsqueeze(0))
    for group, (raw, small) in self._columns.items():
      if not len(small):
        memory["obs", group].index_copy_(0, row, obs[group].unsqueeze(0))
        continue
      memory["obs", group].index_copy_(0, row, obs[group].index_select(1, raw).unsqueeze(0))
      unit = torch.stack([part.to(torch.float32).index_select(0, small) for part in moments[group].unit])
      deviation = (obs[group].index_select(1, small) - unit[0]) / unit[1]
      memory["small", group].index_copy_(0, row, encode(deviation, self.kind).unsqueeze(0))
      memory["unit", group].index_copy_(0, row, unit.unsqueeze(0))

  def read(self, memory: TensorDict, rows: Tensor, envs: Tensor) -> dict[str, Tensor]:
    """Return the raw groups [b, width] and images in rows [b] of environments [b]."""
    found = {group: take(raw, rows, envs) for group, raw in memory["obs"].items()}
    for group, numbers in memory.get("small", {}).items():
      shift, scale = memory["unit", group].index_select(0, rows).unbind(1)
      small = decode(take(numbers, rows, envs)) * scale + shift
      found[group] = torch.cat([found[group], small], 1).index_select(1, self._order[group])
    return found


WORD = 2**32  # the random bits of one number


class Transitions(NamedTuple):
  """Transitions of n steps, a batch [b] of them; observations are raw."""

  obs: dict[str, Tensor]  # groups [b, width] and images, before the first step
  action: Tensor  # [b, num_actions], of the first step
  reward: Tensor  # [b], discounted sum over the steps, up to the end of the episode
  next_obs: dict[str, Tensor]  # groups [b, width] and images, after the last of these steps
  discount: Tensor  # [b], of the value of next_obs: a power of gamma, or 0 where the task terminated
  weight: Tensor  # [b], 1, or 0 where one of the steps was not valid


class Replay:
  """Ring of the last steps of one rank's environments, allocated once; a `collector.Storage`.

  Observations are kept raw, or as `stored` says. The next observation of a step is the following step's.
  Where the time limit cut an episode, it is a final observation in a second ring, at the index `slot`.
  """

  def __init__(
    self,
    env: VecEnv,
    horizon: int,
    length: int,
    dtypes: tuple[torch.dtype, torch.dtype],
    stored: StoredObs | None = None,
  ) -> None:
    """Allocate a ring of `length` steps; each `collect` fills `horizon` of them.

    dtypes: of actions and rewards; of the policy's input.
    """
    self.horizon, self.length, self.num_envs, self.device = horizon, length, env.num_envs, env.device
    self._stored = stored or StoredObs(env)
    flags = ("terminated", "truncated", "valid")
    kinds = {"reward": dtypes[0]} | dict.fromkeys(flags, torch.bool) | {"slot": torch.int64}
    self.memory = TensorDict(
      {
        **self._stored.allocate(length),
        "action": self._zeros(length, env.num_actions, kind=dtypes[0]),
        **{name: self._zeros(length, kind=kind) for name, kind in kinds.items()},
      },
      batch_size=[length],
    )
    slots, images = _slots(env, length), images_of(env)
    self.final_obs = {group: self._zeros(slots, width) for group, width in env.obs_dims.items()}
    self.final_obs |= {name: self._zeros(slots, *own.shape, kind=own.dtype) for name, own in images.items()}
    # The row of the next step [1], the number of filled rows [1], the next slot of each environment.
    self.position = torch.zeros(1, dtype=torch.int64, device=env.device)
    self.filled = torch.zeros_like(self.position)
    self._slot = torch.zeros(env.num_envs, dtype=torch.int64, device=env.device)
    self.written = 0  # number of rows written since the ring was empty, after a collection
    self._envs = torch.arange(env.num_envs, device=env.device)
    # The present step, in static memory; obs is what the policy sees.
    self._sample: dict[str, Any] = {
      "obs": {group: self._zeros(1, width, kind=dtypes[1])[0] for group, width in env.obs_dims.items()}
      | {name: self._zeros(1, *own.shape, kind=own.dtype)[0] for name, own in images.items()},
      **{name: self.memory[name][0].clone() for name in ("action", *kinds) if name != "slot"},
      "restart": torch.zeros(env.num_envs, dtype=torch.bool, device=env.device),
    }

  def _zeros(self, length: int, *width: int, kind: torch.dtype = torch.float32) -> Tensor:
    return torch.zeros(length, self.num_envs, *width, dtype=kind, device=self.device)

  @property
  def steps(self) -> Iterator[dict[str, Any]]:
    """Yield the sample of each of `horizon` steps; it enters the ring when the next one is asked for."""
    for _ in range(self.horizon):
      yield self._sample
      self._store()

  def keep_obs(self, obs: Mapping[str, Tensor], moments: Mapping[str, Moments]) -> None:
    """Store the raw observations [num_envs, ...] before the present step, with their present moments."""
    self._stored.write(self.memory, self.position, obs, moments)

  def keep_state(self, t: int, state: Tensor) -> None:
    """Store nothing: policies that learn from a replay buffer have no memory."""

  def keep_final(self, final_obs: TensorDictBase, state: Tensor, truncated: Tensor) -> None:  # noqa: ARG002
    """Store final groups and images [num_envs, ...] where an episode is truncated [num_envs]; no state."""
    for name, memory in self.final_obs.items():
      new, old = final_obs[name], memory[self._slot, self._envs]
      memory[self._slot, self._envs] = torch.where(_like(truncated, new), new, old)
    self.memory["slot"].index_copy_(0, self.position, self._slot.unsqueeze(0))
    slots = next(iter(self.final_obs.values())).shape[0]
    self._slot.copy_((self._slot + truncated) % slots)

  def _store(self) -> None:
    """Store the present step in its row."""
    for name, value in self._sample.items():
      if name not in ("obs", "restart"):
        self.memory[name].index_copy_(0, self.position, value.unsqueeze(0))
    self.position.copy_((self.position + 1) % self.length)
    self.filled.copy_((self.filled + 1).clamp(max=self.length))

  def newest(self, name: str) -> Tensor:
    """Return a number of the last `horizon` steps [horizon, num_envs]."""
    rows = self.position - self.horizon + torch.arange(self.horizon, device=self.device)
    return self.memory[name][rows % self.length]

  def transitions(
    self, rows: Tensor, envs: Tensor, decay: tuple[int, float], transform: Callable[[Tensor], Tensor]
  ) -> Transitions:
    """Return the transitions that start at rows [b] of environments [b].

    decay: (number of steps, gamma). transform: of each reward, before they are summed.
    """
    count, gamma = decay
    steps = (rows + torch.arange(count, device=self.device)[:, None]) % self.length  # [count, b]
    terminated, truncated, valid, reward = (
      take(self.memory[name], steps, envs) for name in ("terminated", "truncated", "valid", "reward")
    )
    ended = (terminated | truncated).cumsum(0) > 0
    runs = torch.cat([torch.ones_like(ended[:1]), ~ended[:-1]])  # the episode has not ended before the step
    powers = gamma ** torch.arange(count + 1, device=self.device, dtype=reward.dtype)
    total = torch.where(runs, transform(reward), 0) * powers[:count, None]
    taken = runs.sum(0)  # number of steps [b]
    last = steps.gather(0, (taken - 1).unsqueeze(0))[0]
    after, slot = (rows + taken) % self.length, take(self.memory["slot"], last, envs)
    cut = take(self.memory["truncated"], last, envs)
    next_obs = {
      name: torch.where(_like(cut, following), take(self.final_obs[name], slot, envs), following)
      for name, following in self._stored.read(self.memory, after, envs).items()
    }
    return Transitions(
      self._stored.read(self.memory, rows, envs),
      take(self.memory["action"], rows, envs),
      total.sum(0),
      next_obs,
      torch.where(take(self.memory["terminated"], last, envs), 0, powers[taken]),
      (valid | ~runs).all(0).to(reward.dtype),
    )

  def newest_in(self, rows: slice) -> int:
    """Return the number of rows written up to the newest in a part of the ring; below 1: none is there."""
    last = (self.written - 1) % self.length
    since = 0 if rows.start <= last < rows.stop else (last - rows.stop + 1) % self.length
    return self.written - since

  def clear(self) -> None:
    """Forget all steps."""
    self.written = 0
    for part in (self.position, self.filled, self._slot):
      part.zero_()

  def state_dict(self) -> dict[str, Any]:
    """Return all but the rows of the ring, which are in `memory`."""
    return {
      "written": self.written,
      "final_obs": self.final_obs,
      "position": self.position,
      "filled": self.filled,
      "slot": self._slot,
    }

  def load_state_dict(self, state: Mapping[str, Any]) -> None:
    """Continue from a saved ring, whose rows `load_rows` fills in."""
    self.written = state["written"]
    for group, memory in self.final_obs.items():
      memory.copy_(state["final_obs"][group])
    for own, name in ((self.position, "position"), (self.filled, "filled"), (self._slot, "slot")):
      own.copy_(state[name])

  def load_rows(self, first: int, rows: Mapping[str, Any]) -> None:
    """Fill rows of the ring from saved ones [n, num_envs, ...], beginning at the row with index `first`."""
    count = len(rows["reward"])
    self.memory[first : first + count].update_(TensorDict(rows, batch_size=[count]))


class Draw(NamedTuple):
  """Transitions chosen for one or several batches."""

  rows: Tensor  # [b], rows of the ring in which they start
  envs: Tensor  # [b], their environments
  age: Tensor  # [b], steps since then
  weight: Tensor  # [b], of the critics' losses: more where they are drawn less often than others


class ReplaySampler:
  """Sampler of a replay buffer: the same transitions for any number of ranks.

  Each block of environments gives equally many transitions of a batch, uniformly from all of its steps.
  Random numbers are keyed by the global index of the block.
  """

  def __init__(self, replay: Replay, count: int, n_step: int, random: Random, batches: int = 1) -> None:
    """Draw `batches` of `count` transitions of `n_step` steps at once.

    There are random.num_envs blocks of environments.
    """
    self.replay, self.n_step, self.random, self.batches = replay, n_step, random, batches
    self.per_block, self.block = count // random.num_envs, replay.num_envs // random.num_envs
    self._first = torch.arange(random.num_envs, device=replay.device)[:, None] * self.block

  def add(self) -> None:
    """Take the steps of the last collection in."""

  def draw(self) -> Draw:
    """Return transitions [batches * count], batch after batch."""
    self.random.advance()
    shape = (2, self.batches * self.per_block)
    word = self.random.bits("replay.transition", shape).to(torch.int64) & (WORD - 1)
    envs = self._first + (word[:, 0] * self.block >> 32)
    starts = (self.replay.filled - self.n_step).clamp(min=1)  # a transition ends in the row after its steps
    age = self.n_step + 1 + (word[:, 1] * starts >> 32)
    rows = (self.replay.position - age) % self.replay.length
    ones = torch.ones_like(age, dtype=torch.float64)
    return Draw(*(self._by_batch(part) for part in (rows, envs, age, ones)))

  def _by_batch(self, numbers: Tensor) -> Tensor:
    """Return numbers [blocks, batches * per_block, ...] batch after batch, [batches * count, ...]."""
    return numbers.unflatten(1, (self.batches, self.per_block)).transpose(0, 1).flatten(0, 2)

  def learn(self, error: Tensor) -> None:
    """Take in the errors [count] of the values of the last draw."""

  def uniform(self, purpose: str, shape: tuple[int, ...]) -> Tensor:
    """Return numbers [batches * count, *shape] of the present draw, uniform in [0, 1)."""
    return self._by_batch(self.random.uniform(purpose, (self.batches * self.per_block, *shape)))

  def normal(self, purpose: str, width: int) -> Tensor:
    """Return standard normal numbers [batches * count, width] of the present draw."""
    return self._by_batch(self.random.normal(purpose, (self.batches * self.per_block, width)))

  def clear(self) -> None:
    """Forget all steps."""

  def state_dict(self) -> dict[str, Any]:
    """Return what the sampler knows of the steps in the ring."""
    return {}

  def load_state_dict(self, state: Mapping[str, Any]) -> None:
    """Continue from a saved state."""


def _like(flag: Tensor, x: Tensor) -> Tensor:
  """Return flags [n], reshaped to broadcast over x [n, ...]."""
  return flag.view(-1, *[1] * (x.ndim - 1))


def _slots(env: VecEnv, length: int) -> int:
  """Return the number of truncated steps of an environment that a ring of `length` steps may hold."""
  return 1 + -(-length // env.least_between_truncations)


def replay_bytes(env: VecEnv, length: int, dtype: torch.dtype, stored: StoredObs) -> int:
  """Return the memory [bytes] of a ring of `length` steps, with actions and rewards of a type."""
  step = dtype.itemsize * (env.num_actions + 1) + 3 + torch.int64.itemsize
  images = sum(image.bytes for image in images_of(env).values())
  final = (4 * sum(env.obs_dims.values()) + images) * _slots(env, length)
  return length * stored.row_bytes + env.num_envs * (length * step + final)


def blocks(num_envs: int, batch_size: int) -> int:
  """Return the number of blocks of environments that give equally many transitions of a batch."""
  return math.gcd(num_envs, batch_size)
