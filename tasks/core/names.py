"""Lookup of joints, bodies and actuators by name, and of settings by prefix."""

import dataclasses
import itertools
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import torch

from tasks.core.errors import TaskError
from tasks.core.words import nearest_word


def hint(name: str, known: Iterable[str]) -> str:
  """Return the end of an error message: the known name that is nearest to an unknown one."""
  words = list(known)
  return f"nearest: '{nearest_word(name, words)}'" if words else "there is none"


def settings(config: Any, prefix: str) -> dict[str, Any]:
  """Return the fields of a Config with names that start with `prefix`, keyed by the rest of the name."""
  names = [field.name for field in dataclasses.fields(config) if field.name.startswith(prefix)]
  return {name.removeprefix(prefix): getattr(config, name) for name in names}


def names_of(owner: object, buffers: Sequence[torch.Tensor]) -> dict[str, torch.Tensor]:
  """Return buffers by the names of the owner's attributes that hold them; raise TaskError without one."""
  named = {name: value for name, value in vars(owner).items() if any(value is one for one in buffers)}
  if len({*map(id, named.values())}) < len(buffers):
    raise TaskError("a buffer has no name: write self.<name> = self.buffer(...), and no part or list of it")
  return named


class Names:
  """Lookup of the parts of `model` by name.

  Tasks write to `qpos`, `qvel` and `ctrl`, so their columns are always slices: `qpos[:, columns]` is a view
  that can be edited in place. Other arrays are only read: their columns are a slice if they are evenly
  spaced, otherwise an index tensor [n] int64, with which indexing makes a copy.
  """

  model: Any
  device: torch.device

  def qpos_of(self, *joints: str) -> slice:
    """Return the `qpos` columns of the named joints as a slice, in order; raise ValueError if none fits."""
    return self._span("qpos", joints, self._qpos_columns(joints))

  def qvel_of(self, *joints: str) -> slice:
    """Return the `qvel` columns of the named joints as a slice, in order; raise ValueError if none fits."""
    return self._span("qvel", joints, self._qvel_columns(joints))

  def joints_of(self, *joints: str) -> tuple[slice | torch.Tensor, slice | torch.Tensor]:
    """Return the `qpos` and the `qvel` columns of the named joints, in any order: slices or indices [n].

    This is for families of tasks that serve several robots. Read and write in one step: an assignment to
    `qpos[:, columns]` changes the state, one to `angles = qpos[:, columns]` may change a copy.
    """
    return self._pick(self._qpos_columns(joints)), self._pick(self._qvel_columns(joints))

  def ctrl_of(self, *actuators: str) -> slice:
    """Return the `ctrl` columns of the named actuators as a slice, in order; ValueError if none fits."""
    owner = np.repeat(np.arange(self.model.nactuator), self.model.actuator_ctrlnum)
    ids = map(self.model.actuator_id, actuators)
    columns = [control for actuator in ids for control in np.flatnonzero(owner == actuator).tolist()]
    return self._span("ctrl", actuators, columns)

  def body_of(self, *bodies: str) -> slice | torch.Tensor:
    """Return the rows of n named bodies, also of one, in `xpos`, `body_mass`, ...: a slice or [n] int64."""
    return self._pick([self.model.body_id(name) for name in bodies])

  def geom_of(self, *geoms: str) -> slice | torch.Tensor:
    """Return the rows of n named geoms in `geom_xpos`, `geom_friction`: a slice or [n] int64."""
    return self._pick([self.model.geom_id(name) for name in geoms])

  def site_of(self, *sites: str) -> slice | torch.Tensor:
    """Return the rows of n named sites in `site_xpos`, `site_xmat`: a slice or [n] int64."""
    return self._pick([self.model.site_id(name) for name in sites])

  def sensor_of(self, *sensors: str) -> slice | torch.Tensor:
    """Return the n columns of `sensordata` that the named sensors fill, in order: a slice or [n] int64."""
    slices = map(self.model.sensor_slice, sensors)
    return self._pick([column for part in slices for column in range(part.start, part.stop)])

  def key_of(self, name: str) -> tuple[torch.Tensor, torch.Tensor]:
    """Return `qpos` [nq] and `ctrl` [nu] of the named key frame."""
    key = self.model.key_id(name)
    values = np.concatenate([self.model.key_qpos[key], self.model.key_ctrl[key]])
    qpos, ctrl = torch.as_tensor(values, dtype=torch.float32, device=self.device).split(
      [self.model.nq, self.model.nu]
    )
    return qpos, ctrl

  def constant(self, values: Any) -> torch.Tensor:
    """Return values [...] as a float32 tensor [...] on the device."""
    return torch.tensor(np.asarray(values), dtype=torch.float32, device=self.device)

  def _qpos_columns(self, joints: tuple[str, ...]) -> list[int]:
    return self._columns(joints, self.model.jnt_qposadr, (7, 4, 1, 1))

  def _qvel_columns(self, joints: tuple[str, ...]) -> list[int]:
    return self._columns(joints, self.model.jnt_dofadr, (6, 3, 1, 1))

  def _columns(self, joints: tuple[str, ...], address: np.ndarray, widths: tuple[int, ...]) -> list[int]:
    """Return the columns of `joints`, given first columns and the widths of free, ball, slide and hinge."""
    columns: list[int] = []
    for joint in map(self.model.joint_id, joints):
      columns += range(address[joint], address[joint] + widths[self.model.jnt_type[joint]])
    return columns

  def _span(self, field: str, names: tuple[str, ...], columns: list[int]) -> slice:
    """Return the slice of these columns; raise ValueError if they are not evenly spaced."""
    span = self._pick(columns)
    if isinstance(span, slice):
      return span
    raise ValueError(
      f"{', '.join(names)} are the columns {columns} of {field}, not evenly spaced upwards: "
      "ask for them in parts, and join the results with torch.cat"
    )

  def _pick(self, index: list[int]) -> slice | torch.Tensor:
    """Return `index` as a slice if it is evenly spaced and increasing, otherwise as a tensor [n] int64."""
    steps = {b - a for a, b in itertools.pairwise(index)} or {1}
    if index and len(steps) == 1 and min(steps) > 0:
      return slice(index[0], index[-1] + 1, min(steps))
    return torch.as_tensor(index, dtype=torch.int64, device=self.device)
