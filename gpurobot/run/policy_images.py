"""Images that a policy sees, as pictures for people: in the loggers, in the viewers and in videos."""

from collections.abc import Mapping

import torch
from torch import Tensor

from gpurobot.learn.algorithm import Algorithm
from gpurobot.learn.env import Image, VecEnv, images_of
from gpurobot.run.logger import Loggers

ENVS = 4  # environments in the images for the loggers, side by side
HEIGHT = 96  # smallest height of their pictures [pixels]


def picture(image: Tensor, kind: Image, frames: int = 1) -> Tensor:
  """Return an image [..., height, width, channels] as colours [..., height, w, 3] uint8.

  Its range becomes black to white. Of stacked `frames` the last is shown. Three channels are red, green and
  blue; any other number of them lies side by side in grey.
  """
  last = image.unflatten(-1, (frames, -1))[..., -1, :]
  if kind.kind != "uint8":
    last = ((last.float() - kind.low) / (kind.high - kind.low)).nan_to_num(0.0).clamp(0.0, 1.0) * 255
  shown = last.to(torch.uint8)
  if shown.shape[-1] == 3:
    return shown
  return torch.cat(shown.unbind(-1), -1).unsqueeze(-1).expand(*shown.shape[:-2], -1, 3)


def enlarged(colours: Tensor, factor: int) -> Tensor:
  """Return a picture [height, width, 3] with squares of factor x factor pixels for its pixels."""
  return colours.repeat_interleave(factor, 0).repeat_interleave(factor, 1)


def pictures(env: VecEnv, obs: Mapping[str, Tensor]) -> dict[str, Tensor]:
  """Return the images among observations as pictures [num_envs, height, w, 3] on the CPU, by name."""
  frames: Mapping[str, int] = getattr(env, "stacks", {})
  return {name: picture(obs[name], kind, frames.get(name, 1)).cpu() for name, kind in images_of(env).items()}


class PolicyImages:
  """What the policy of a training sees, for the loggers: at every so many-th row of the log."""

  def __init__(self, learner: Algorithm, loggers: Loggers, every: int | None, rows: int = 0) -> None:
    """Write to the loggers at the first row and `every` so many-th, after `rows` rows; None: never."""
    self._learner, self._loggers = learner, loggers
    self._every = every if images_of(learner.env) else None
    self._rows = rows

  def write(self) -> list[str]:
    """Write the images of the first environments after a row of the log, if they are due; return warnings."""
    self._rows += 1
    if self._every is None or (self._rows - 1) % self._every:
      return []
    obs = {name: self._learner.collector.obs[name][:ENVS] for name in images_of(self._learner.env)}
    shown = {
      name: enlarged(torch.cat([*batch], 1), max(1, HEIGHT // batch.shape[1]))
      for name, batch in pictures(self._learner.env, obs).items()
    }
    return self._loggers.write_images(shown, self._learner.steps)
