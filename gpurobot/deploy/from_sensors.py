"""Deployable policy from the numbers of its sensors: observation, history and last action are inside."""

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor, nn

from gpurobot.deploy.deployed import Deployed

MEMORY = "action"  # sensor that the policy remembers itself: its last action


class FromSensors(nn.Module):
  """A deployed policy behind the observation that a manifest spells out.

  It takes the numbers [n, columns] of each sensor by name, except the last action; images as `Deployed` does;
  and "state": zeros at the start of an episode, then the last "next_state". Its outputs are the policy's, and
  before "next_state", which all have here, "obs": the latest observation [n, columns].

  The state holds a 1 after the first step, the last observations, the oldest first, the last action, and the
  state of the policy.
  """

  places: Tensor  # among the sensors' numbers, by column of the observation
  scale: Tensor
  offset: Tensor

  def __init__(self, deployed: Deployed, facts: Mapping[str, Any]) -> None:
    """Take a policy and the manifest with its sensors and columns."""
    super().__init__()
    self.policy, self.images, self.estimates = deployed, deployed.images, deployed.estimates
    self.sensors = {sensor["name"]: list(sensor["columns"]) for sensor in facts["sensors"]}
    numbers = [(name, column) for name, columns in self.sensors.items() for column in columns]
    columns = facts["observation"]["columns"]
    self.register_buffer(
      "places", torch.tensor([numbers.index((own["sensor"], own["column"])) for own in columns])
    )
    for key in ("scale", "offset"):
      self.register_buffer(key, torch.tensor([float(own[key]) for own in columns]))
    self.past = (facts["observation"]["history, the oldest first"] - 1) * len(columns)
    self.widths = [1, self.past, len(self.sensors.get(MEMORY, ())), deployed.state_width]
    self._names, self._inner = list(self.inputs), list(deployed.inputs)
    self.eval()

  @property
  def inputs(self) -> dict[str, Tensor]:
    """Zeros for each input, [1, ...] by name, in order."""
    sensors = {name: torch.zeros(1, len(columns)) for name, columns in self.sensors.items() if name != MEMORY}
    images = {name: zeros for name, zeros in self.policy.inputs.items() if name in self.images}
    return {**sensors, **images, "state": torch.zeros(1, sum(self.widths))}

  @property
  def outputs(self) -> list[str]:
    """Names of the outputs, in order."""
    return [*(name for name in self.policy.outputs if name != "next_state"), "obs", "next_state"]

  def forward(self, *inputs: Tensor) -> tuple[Tensor, ...]:
    """Return the outputs [n, ...] for `inputs` [n, ...]."""
    given = dict(zip(self._names, inputs, strict=True))
    started, past, last, own = given["state"].split(self.widths, 1)
    numbers = torch.cat([last if name == MEMORY else given[name] for name in self.sensors], 1)
    latest = self.scale * (numbers[:, self.places] - self.offset)
    if self.past:
      past = torch.where(started > 0, past, latest.repeat(1, self.past // latest.shape[1]))
    obs = torch.cat([past, latest], 1)
    known = {**given, "obs": obs, "state": own}
    values = self.policy(*(known[name] for name in self._inner))
    found = dict(zip(self.policy.outputs, values, strict=True))
    own = found.pop("next_state", own)
    action = found["action"].to(obs.dtype) if self.widths[2] else last
    state = torch.cat([torch.ones_like(started), obs[:, obs.shape[1] - self.past :], action, own], 1)
    return (*found.values(), latest, state)
