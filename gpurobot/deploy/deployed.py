"""Deployable policy: one float32 function of raw observations, for export."""

import copy
import dataclasses
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from gpurobot.deploy.policy import Policy
from gpurobot.learn.estimator import EstimatingInput
from gpurobot.learn.normalize import BOUND
from tasks.shared.action_path import ActionFilter

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

  It takes the observation's numbers, "obs", if it has any; its images by name, uint8, or float32 in the units
  of the task; and "state", if the policy is recurrent or its actions are filtered. The outputs are, by name:
  "action", clipped to [-1, 1], or int64 for discrete actions; "ctrl", the robot's controls, if they depend
  only on the action and its filter; "estimate", if the policy estimates blocks of the critic; "next_state".
  The filtered action is the end of the state.
  """

  shift: Tensor
  scale: Tensor
  estimate_shift: Tensor
  estimate_scale: Tensor

  def __init__(
    self, policy: Policy, controls: Controls | None, action_filter: ActionFilter | None = None
  ) -> None:
    super().__init__()
    network, observations = policy.agent.network, policy.agent.observations
    shift, scale = observations.moments["policy"].unit
    self.register_buffer("shift", shift.clone())
    self.register_buffer("scale", scale.clone())
    self.bound = BOUND if observations.enabled else None
    self.images = {name: own for name, own in policy.agent.spaces.images.items() if "policy" in own.groups}
    self.names = policy.agent.spaces.names
    self.encode = copy.deepcopy(network.actor_input)
    self.estimates: list[str] = []  # the block of each estimate
    if isinstance(self.encode, EstimatingInput):
      self.estimates, columns = self.encode.names, self.encode.columns
      for name, part in zip(("shift", "scale"), observations.moments["critic"].unit, strict=True):
        own = part[columns] if observations.enabled else torch.full_like(part[columns], name == "scale")
        self.register_buffer(f"estimate_{name}", own.clone())
    self.actor, self.head = copy.deepcopy(network.actor), copy.deepcopy(network.head)
    self.controls = controls
    self.filter = None
    if controls is not None and action_filter is not None:
      self.filter = dataclasses.replace(action_filter, scale=action_filter.scale.cpu().clone())
    self.core_width = network.actor.state_width  # of the recurrent core
    self.state_width = self.core_width + (0 if self.filter is None else len(self.filter.scale))
    self.requires_grad_(False).float().cpu().eval()
    self._names = list(self.inputs)

  @property
  def inputs(self) -> dict[str, Tensor]:
    """Zeros for each input, [1, ...] by name, in order."""
    images = {
      name: torch.zeros(1, *image.shape, dtype=torch.uint8 if image.kind == "uint8" else torch.float32)
      for name, image in self.images.items()
    }
    widths = {"obs": self.shift.shape[0], "state": self.state_width}
    vectors = {name: torch.zeros(1, width) for name, width in widths.items() if width}
    first, last = ({name: vectors[name]} if name in vectors else {} for name in widths)
    return first | images | last

  @property
  def outputs(self) -> list[str]:
    """Names of the outputs, in order."""
    control, memory = ["ctrl"] * (self.controls is not None), ["next_state"] * bool(self.state_width)
    return ["action", *control, *["estimate"] * bool(self.estimates), *memory]

  def forward(self, *inputs: Tensor) -> tuple[Tensor, ...]:
    """Return the outputs [n, ...] for raw `inputs` [n, ...].

    "state" [n, state_width] is zero at the start of an episode, later the last "next_state".
    """
    given = dict(zip(self._names, inputs, strict=True))
    nothing = self.shift.new_zeros(inputs[0].shape[0], 0)
    x, state = given.get("obs", nothing), given.get("state", nothing)
    x = x if self.bound is None else ((x - self.shift) / self.scale).clamp(-self.bound, self.bound)
    seen = {"policy": x.unsqueeze(0)}
    seen |= {name: image.stored(given[name]).unsqueeze(0) for name, image in self.images.items()}
    restart = x.new_zeros(1, x.shape[0], dtype=torch.bool)
    features = self.encode(seen)
    estimate = []
    if self.estimates:
      estimate = [features[0, :, -len(self.estimates) :] * self.estimate_scale + self.estimate_shift]
    features, core = self.actor(features, state[:, : self.core_width], restart)
    policy = self.head(features.squeeze(0))
    action = policy.action(policy.mode())
    action = action.clamp(-1.0, 1.0) if action.is_floating_point() else action
    sent = action if self.filter is None else self.filter(state[:, self.core_width :], action)
    control = [] if self.controls is None else [self.controls(sent)]
    memory = torch.cat([core, *[sent] * (self.filter is not None)], 1)
    return (action, *control, *estimate, *([memory] if self.state_width else []))
