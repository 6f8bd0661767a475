"""Deployable policy: one float32 function of raw observations, for export."""

import copy
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from gpurobot.deploy.policy import Policy
from gpurobot.learn.normalize import BOUND

EXACT = 1e-5  # largest error that counts as rounding, relative to the largest control


@dataclass(frozen=True)
class Controls:
  """Affine map from actions to a robot's controls: offset + action @ gain."""

  offset: Tensor  # [nu], in the units of the controls
  gain: Tensor  # [num_actions, nu]

  @classmethod
  def fit(cls, actions: Tensor, controls: Tensor) -> "Controls | None":
    """Return the map from `actions` [n, num_actions] to `controls` [n, nu]; None if it is not affine.

    The actions are random: controls that depend on anything else, or are clipped, do not fit. With fewer than
    two samples per unknown the result is None too.
    """
    actions, controls = actions.double().cpu(), controls.double().cpu()
    if len(actions) < 2 * (1 + actions.shape[1]):
      return None
    inputs = torch.cat([torch.ones_like(actions[:, :1]), actions], dim=1)
    solution = torch.linalg.lstsq(inputs, controls).solution
    size = controls.abs().amax(0).clamp(min=torch.finfo(torch.float32).tiny)
    solution[solution.abs() < EXACT * size] = 0.0
    found = cls(solution[0].float(), solution[1:].float())
    errors = (found(actions.float()) - controls).abs().amax(0) / size
    return found if found.gain.any() and (errors < EXACT).all() else None

  def __call__(self, action: Tensor) -> Tensor:
    """Return the controls [n, nu] for actions [n, num_actions]."""
    return self.offset + action.to(self.gain.dtype) @ self.gain


class Deployed(nn.Module):
  """Policy without noise, with observation normalisation before it and the map to controls after it.

  The outputs are, by name: "action", clipped to [-1, 1], or int64 for discrete actions; "ctrl", the robot's
  controls, if they depend only on the action; "next_state", if the policy is recurrent.
  """

  shift: Tensor
  scale: Tensor

  def __init__(self, policy: Policy, controls: Controls | None) -> None:
    super().__init__()
    network, observations = policy.agent.network, policy.agent.observations
    shift, scale = observations.moments["policy"].unit
    self.register_buffer("shift", shift.clone())
    self.register_buffer("scale", scale.clone())
    self.bound = BOUND if observations.enabled else None
    self.actor, self.head = copy.deepcopy(network.actor), copy.deepcopy(network.head)
    self.controls = controls
    self.state_width = network.actor.state_width
    self.requires_grad_(False).float().cpu().eval()

  @property
  def inputs(self) -> dict[str, int]:
    """Width of each input, by name."""
    return {"obs": len(self.shift)} | ({"state": self.state_width} if self.state_width else {})

  @property
  def outputs(self) -> list[str]:
    """Names of the outputs, in order."""
    control, memory = ["ctrl"] * (self.controls is not None), ["next_state"] * bool(self.state_width)
    return ["action", *control, *memory]

  def forward(self, obs: Tensor, state: Tensor | None = None) -> tuple[Tensor, ...]:
    """Return the outputs [n, ...] for raw observations [n, width].

    state [n, state_width] is zero at the start of an episode, later the last "next_state". A policy that is
    not recurrent takes none.
    """
    x = obs if self.bound is None else ((obs - self.shift) / self.scale).clamp(-self.bound, self.bound)
    restart = torch.zeros_like(obs[:, 0], dtype=torch.bool)
    state = obs[:, :0] if state is None else state
    features, state = self.actor(x.unsqueeze(0), state, restart.unsqueeze(0))
    policy = self.head(features.squeeze(0))
    action = policy.action(policy.mode())
    action = action.clamp(-1.0, 1.0) if action.is_floating_point() else action
    control = [] if self.controls is None else [self.controls(action)]
    return (action, *control, *([state] if self.state_width else []))
