"""A policy as it is taken along: one function of raw observations, in float32."""

import copy
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from gpurobot.deploy.policy import Policy
from gpurobot.learn.normalize import BOUND

EXACT = 1e-5  # of the largest control: less than that off is rounding


@dataclass(frozen=True)
class Controls:
  """What a robot is told for an action: offset + action @ gain."""

  offset: Tensor  # [nu] in the controls' units
  gain: Tensor  # [num_actions, nu]

  @classmethod
  def fit(cls, actions: Tensor, controls: Tensor) -> "Controls | None":
    """Return what has made `controls` [n, nu] of `actions` [n, num_actions]; None if it is more than that.

    The actions are random ones: what depends on anything else, or is cut anywhere, does not fit. Fewer than
    two for each number to be found tell nothing: None.
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
  """A policy without noise, what prepares its observations, and what makes controls of its actions.

  The outputs have names: "action", cut to [-1, 1], or whole numbers where the task has choices; "ctrl", the
  robot's controls, where they follow from the action alone; "next_state", where the policy has a memory.
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
    """The width of each input, by name."""
    return {"obs": len(self.shift)} | ({"state": self.state_width} if self.state_width else {})

  @property
  def outputs(self) -> list[str]:
    """The names of the outputs."""
    control, memory = ["ctrl"] * (self.controls is not None), ["next_state"] * bool(self.state_width)
    return ["action", *control, *memory]

  def forward(self, obs: Tensor, state: Tensor | None = None) -> tuple[Tensor, ...]:
    """Return the outputs [n, ...] for raw observations [n, width].

    state [n, state_width] is zero where an episode starts, then the last "next_state"; a policy without a
    memory has none.
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
