"""Cameras of a task: how often they see, how late, and how well."""

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from tasks.core.observation import Uniform
from tasks.core.shapes import like


@dataclass(frozen=True)
class Defects:
  """What sets a camera apart from a perfect one.

  `rate`: it sees every `rate`-th control step of an episode, and keeps its images in between.
  `latency`: it shows an image of so many images ago. `dropout`: the fraction of pixels without depth:
  they read 0. `quantum`: depth is a multiple of it [m], 0: of nothing.
  """

  rate: int = 1
  latency: int = 0
  dropout: float = 0.0
  quantum: float = 0.0

  def __post_init__(self) -> None:
    """Raise ValueError if a number is out of range."""
    for name, low, high in (("rate", 1, None), ("latency", 0, None), ("dropout", 0, 1), ("quantum", 0, None)):
      value = getattr(self, name)
      if value < low or (high is not None and value > high):
        upper = "or more" if high is None else f"to {high}"
        raise ValueError(f"camera: {name}={value:g} is not a number of {low} {upper}")


class TaskCamera:
  """A camera with defects; the base of all tasks triggers it.

  `camera` is a `physics.Camera`, and `pos`, `quat` and `fovy` are its own, to be written.
  """

  def __init__(self, camera: Any, defects: Defects, uniform: Uniform) -> None:
    self.camera, self.defects, self._uniform = camera, defects, uniform
    self.pos, self.quat, self.fovy = camera.pos, camera.quat, camera.fovy
    self.near, self.far = camera.near, camera.far
    self._past = {  # the oldest first, the last is what the camera sees
      kind: torch.zeros(defects.latency + 1, *image.shape, dtype=image.dtype, device=image.device)
      for kind, image in camera.images.items()
    }

  @property
  def memory(self) -> dict[str, Tensor]:
    """Tensors kept from step to step [latency + 1, num_envs, ...], by name."""
    return {f"{kind} of {self.camera.name}": past for kind, past in self._past.items()}

  def render(self) -> dict[str, Tensor]:
    """Return the images that the camera shows now [num_envs, height, width, channels], by kind.

    They are "depth" (float32 [m], `far` where there is nothing), "rgb" (uint8), "segmentation" (int32, the
    geom, -1 where there is none) and "normal" (float32, in the camera's axes). Row 0 is the upper one. The
    next step overwrites them.
    """
    return {kind: past[0] for kind, past in self._past.items()}

  def look(self, episode_steps: Tensor) -> None:
    """Take the images that are due after a control step."""
    due = episode_steps % self.defects.rate == 0
    seen = self._see(due)
    for kind, past in self._past.items():
      later = torch.cat([past[1:], seen[kind].unsqueeze(0)])
      past.copy_(torch.where(like(due, past[0]), later, past))

  def restart(self, where: Tensor, since: int = 0) -> None:
    """See a new state where `where` [num_envs] holds, in place of the images from index `since` on."""
    seen = self._see(where)
    for kind, past in self._past.items():
      past[since:] = torch.where(like(where, past[0]), seen[kind], past[since:])

  def _see(self, mask: Tensor) -> dict[str, Tensor]:
    """Return the images [num_envs, ...] of the present state, right where `mask` [num_envs] holds."""
    images = dict(self.camera.render(mask))
    if "depth" in images:
      depth = images["depth"]
      if self.defects.quantum:
        depth = torch.round(depth / self.defects.quantum) * self.defects.quantum
      if self.defects.dropout:
        lost = self._uniform(f"dropout of {self.camera.name}", depth.shape[1:], 0.0, 1.0)
        depth = depth.masked_fill(lost < self.defects.dropout, 0.0)
      images["depth"] = depth
    return images
