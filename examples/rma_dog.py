"""RMA dog: the robot dog feels its mass, friction and delay; a student guesses them from what happened."""

from collections.abc import Mapping
from dataclasses import dataclass

import torch
from torch import nn

from tasks import base, quadruped
from tasks.base import option

HIDDEN = ("friction", "mass", "delay")  # blocks of the critic that no robot can measure
FRAMES, GUESSES = 20, 8  # observations of a student, and numbers that it computes from them
TRAIN, PPO = quadruped.TRAIN, quadruped.PPO


@dataclass
class Config(quadruped.Config):
  """Settings of the robot dog, and whether its policy is the student."""

  student: bool = option(False, "policy without what no robot can measure")
  history_policy: int = option(1, "observations that the policy sees, the oldest first", low=1)


class Task(quadruped.Task):
  """The robot dog, with the hidden blocks in the observation of the teacher."""

  def observe(self) -> dict[str, dict[str, torch.Tensor]]:
    """Return the groups `policy` and `critic`, and `teacher` for a student."""
    groups = super().observe()
    teacher = groups["policy"] | {name: groups["critic"][name] for name in HIDDEN}
    if self.config.student:
      return {"policy": groups["policy"], "teacher": teacher}
    return groups | {"policy": teacher}

  def symmetry(self) -> Mapping[str, base.Reflection]:
    """Return no mirror image: the hidden blocks have none."""
    return {}


class Adaptation(nn.Module):
  """Guesses from all observations, beside the last one, and the hidden layers of the policy after them."""

  def __init__(self, width: int, hidden: list[int]) -> None:
    super().__init__()
    frame = width // FRAMES
    self.frame = nn.Sequential(nn.Linear(frame, 32), nn.SiLU())
    self.guess = nn.Linear(FRAMES * 32, GUESSES)
    sizes = [frame + GUESSES, *hidden]
    layers = [[nn.Linear(*pair), nn.SiLU()] for pair in zip(sizes, hidden, strict=False)]
    self.policy = nn.Sequential(*(part for layer in layers for part in layer))

  def forward(self, x: torch.Tensor) -> torch.Tensor:
    """Map observations [..., width] to features [..., hidden[-1]]."""
    frames = x.unflatten(-1, (FRAMES, -1))
    guesses = self.guess(self.frame(frames).flatten(-2))
    return self.policy(torch.cat([frames[..., -1, :], guesses], -1))
