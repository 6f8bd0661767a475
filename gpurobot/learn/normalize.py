"""Running mean and variance in float64, merged exactly over batches and ranks once per iteration."""

import math
from collections.abc import Collection, Mapping

import torch
from torch import Tensor

EPSILON = 1e-5  # added to the variance
BOUND = 5.0  # normalised observations are clipped here [standard deviations]
# A sample farther from the mean counts as this far [standard deviations]. One outlier among n samples adds at
# most OUTLIER^2 / n to the relative variance, and moments that are much too narrow still widen at each merge.
OUTLIER = 100.0


def symlog(x: Tensor) -> Tensor:
  """Return sign(x) log(1 + |x|) of x [...] (Hafner et al. 2023, arXiv 2301.04104)."""
  return x.sign() * x.abs().log1p()


class Moments:
  """Mean and variance of `width` quantities over all samples merged so far.

  `accumulate` adds samples to `pending`, the caller sums that over the ranks, and `merge` adds it to the
  moments. `normalize` and `denormalize` change only then: the moments are frozen during a rollout and its
  update. Before the first merge mean and variance are 0 and 1.

  Outliers are bounded: a sample counts as at most OUTLIER standard deviations from the mean.
  """

  relative = False  # EPSILON is in units of the squared mean, so that the scale follows what vanishes

  def __init__(
    self, width: int, device: torch.device, dtype: torch.dtype = torch.float32, reach: float = math.inf
  ) -> None:
    """Create moments of no samples; before the first merge a sample counts as at most `reach` from 0."""
    self.count = torch.zeros(1, dtype=torch.float64, device=device)
    self.mean = self.count.new_zeros(width)
    self.m2 = self.count.new_zeros(width)  # sum of squared deviations from the mean
    # Since the last merge: count, sum and sum of squares of (sample - mean).
    self.pending = self.count.new_zeros(1 + 2 * width)
    self._shift = torch.zeros(width, dtype=dtype, device=device)
    self._scale = torch.ones(width, dtype=dtype, device=device)
    self._first_reach = reach
    self._reach = torch.full_like(self.mean, reach)  # the largest deviation that counts

  @property
  def variance(self) -> Tensor:
    """Population variance [width], 1 before the first merge."""
    return torch.where(self.count > 0, self.m2 / self.count.clamp(min=1), torch.ones_like(self.m2))

  @property
  def unit(self) -> tuple[Tensor, Tensor]:
    """Shift and scale of the normalised quantities, [width] each."""
    return self._shift, self._scale

  def normalize(self, x: Tensor) -> Tensor:
    """Return (x - mean) / std [..., width] of samples x [..., width]."""
    return (x - self._shift).div_(self._scale)

  def denormalize(self, x: Tensor) -> Tensor:
    """Return mean + std * x [..., width], the inverse of `normalize`."""
    return x * self._scale + self._shift

  def accumulate(self, x: Tensor, weight: Tensor) -> None:
    """Add finite samples x [n, width] with weights [n] of 0 or 1 to the pending sums."""
    # Deviations from the frozen mean are small, so that their squares sum without cancellation.
    deviation = x.to(torch.float64, copy=True).sub_(self.mean).clamp_(-self._reach, self._reach)
    weight = weight.to(torch.float64)
    first = weight @ deviation
    self.pending += torch.cat([weight.sum(0, keepdim=True), first, weight @ deviation.square()])

  def take(self, other: "Moments") -> None:
    """Add the pending sums of other moments, about a mean of their own; those then forget them."""
    width = self.mean.numel()
    n, first, second = other.pending.to(self.mean.device).split([1, width, width])
    shift = other.mean.to(self.mean.device) - self.mean
    moved = [n, first + n * shift, second + 2 * shift * first + n * shift.square()]
    self.pending += torch.cat(moved)
    other.forget()

  def forget(self) -> None:
    """Drop the pending sums."""
    self.pending.zero_()

  def merge(self) -> None:
    """Add the pending sums to the moments, exactly for any split into batches (Chan, Golub, LeVeque 1979)."""
    width = self.mean.numel()
    n, first, second = self.pending.split([1, width, width])
    delta = first / n.clamp(min=1)
    total = (self.count + n).clamp(min=1)
    self.m2 += second - first * delta + delta.square() * (self.count * n / total)
    self.mean += delta * (n / total)
    self.count += n
    self.forget()
    self._refresh()

  def decay(self, part: float) -> None:
    """Multiply the weight of the samples merged so far by `part`; only the next merge shows it."""
    self.count *= part
    self.m2 *= part

  def rescale(self, factor: Tensor) -> None:
    """Multiply all samples merged so far by a factor [1], and with them what `denormalize` returns."""
    factor = torch.where(self.count > 0, factor, 1)
    self.m2 *= factor.square()
    for part in (self.mean, self._shift, self._scale, self._reach):
      part.mul_(factor)

  def _refresh(self) -> None:
    self._shift.copy_(self.mean)
    unit = self.mean.square().clamp(min=1e-30) if self.relative else 1.0  # errors may be 0 throughout
    std = (self.variance + EPSILON * unit).sqrt()
    self._scale.copy_(torch.where(self.count > 0, std, 1))
    self._reach.copy_(torch.where(self.count > 0, OUTLIER * std, self._first_reach))

  def state_dict(self) -> dict[str, Tensor]:
    """Return count, mean and sum of squared deviations."""
    return {"count": self.count, "mean": self.mean, "m2": self.m2}

  def load_state_dict(self, state: Mapping[str, Tensor]) -> None:
    """Continue from saved moments."""
    for name, tensor in self.state_dict().items():
      tensor.copy_(state[name])
    self._refresh()


class ObservationNormalizer:
  """Normaliser of observation groups: zero mean, unit variance, clipped, in the network's input dtype.

  Images pass unchanged: the network knows their range.
  """

  def __init__(
    self,
    obs_dims: Mapping[str, int],
    device: torch.device,
    dtypes: tuple[torch.dtype, torch.dtype],
    enabled: bool,
    images: Collection[str] = (),
  ) -> None:
    """Create the moments of each group; `images` are the names of the images.

    dtypes: of the arithmetic and of the result. If not `enabled`, observations are only converted.
    """
    self.moments = {group: Moments(width, device, dtypes[0], OUTLIER) for group, width in obs_dims.items()}
    self.dtypes, self.enabled, self.images = dtypes, enabled, images

  def __call__(self, obs: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Return the network's input groups [..., width] for raw groups [..., width], and the images."""
    groups = {group: self._prepare(group, obs[group]).to(self.dtypes[1]) for group in self.moments}
    return groups | {name: obs[name] for name in self.images}

  def write(self, obs: Mapping[str, Tensor], out: Mapping[str, Tensor]) -> None:
    """Write the network's input for raw groups and images [...] to tensors `out` of the same shapes."""
    for group, prepared in self(obs).items():  # rounding and copying in one operation takes twice as long
      out[group].copy_(prepared)

  def _prepare(self, group: str, obs: Tensor) -> Tensor:
    x = obs.to(self.dtypes[0])
    return self.moments[group].normalize(x).clamp_(-BOUND, BOUND) if self.enabled else x

  def accumulate(self, obs: Mapping[str, Tensor], weight: Tensor) -> None:
    """Add raw observations [n, width] with weights [n] of 0 or 1 to the pending sums."""
    for group, moments in self.moments.items():
      moments.accumulate(obs[group], weight)

  def take(self, other: "ObservationNormalizer") -> None:
    """Add the pending sums of another normaliser, which then forgets them."""
    for group, moments in self.moments.items():
      moments.take(other.moments[group])

  def forget(self) -> None:
    """Drop the pending sums of each group."""
    for moments in self.moments.values():
      moments.forget()

  def merge(self) -> None:
    """Add the pending sums to the moments of each group."""
    for moments in self.moments.values():
      moments.merge()

  def clipped(self, x: Tensor) -> Tensor:
    """Return the share of normalised observations [steps, n, width] at the clip bound, a scalar.

    Only the last step is used: all steps would take 2 % of an iteration. Of images alone it is 0.
    """
    if not x.shape[-1]:
      return x.new_zeros((), dtype=torch.float32)
    return (x[-1].abs() >= BOUND).to(torch.float32).mean()

  def reflect(self, x: Tensor, index: Tensor, sign: Tensor) -> Tensor:
    """Return the normalised mirror image [..., width] of normalised observations x of the group "policy".

    x is [..., width]; index and sign are [width]. The mirror image of raw observations is
    sign * raw[..., index].
    """
    if not self.enabled:
      return x[..., index] * sign.to(x.dtype)
    moments = self.moments["policy"]
    image = moments.denormalize(x.to(self.dtypes[0]))[..., index] * sign
    return moments.normalize(image).clamp_(-BOUND, BOUND).to(x.dtype)

  def state_dict(self) -> dict[str, dict[str, Tensor]]:
    """Return the moments of each group."""
    return {group: moments.state_dict() for group, moments in self.moments.items()}

  def load_state_dict(self, state: Mapping[str, Mapping[str, Tensor]]) -> None:
    """Continue from saved moments."""
    for group, moments in self.moments.items():
      moments.load_state_dict(state[group])
