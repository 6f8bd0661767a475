"""Which rows of the state memory `[row, env]` hold what."""

from __future__ import annotations

import math
from dataclasses import dataclass

from physics.delay import past_rows
from physics.model import Model

# Everything that the future depends on, controls aside.
STATE = ("qpos", "qvel", "act", "past_ctrl", "mocap_pos", "mocap_quat", "qacc_warmstart")
DEFAULT_OUTPUTS = ("qacc", "xpos", "xquat", "cfrc_ext", "contact_count", "overflow", "solver_niter")
COUNTERS = ("contact_count", "overflow", "solver_niter")  # rows that hold the bits of an int32


@dataclass(frozen=True)
class Block:
  """Consecutive rows: one field."""

  start: int
  shape: tuple[int, ...]

  @property
  def rows(self) -> int:
    """Number of rows."""
    return math.prod(self.shape)


class Layout:
  """The fields of one simulation, in memory order: state, mask, outputs."""

  def __init__(self, model: Model, outputs: tuple[str, ...] = DEFAULT_OUTPUTS) -> None:
    shapes = field_shapes(model)
    known = [name for name in shapes if name not in (*STATE, "mask")]
    for name in outputs:
      if name not in known or outputs.count(name) > 1:
        fault = "is named twice" if name in known else f"is unknown; outputs are: {', '.join(known)}"
        raise ValueError(f"output {name!r} {fault}")
    self.blocks: dict[str, Block] = {}
    self.rows = 0
    for name in (*STATE, "mask", *outputs):
      self.blocks[name] = Block(self.rows, shapes[name])
      self.rows += self.blocks[name].rows

  def __contains__(self, name: str) -> bool:
    return name in self.blocks

  @property
  def state_rows(self) -> int:
    """Number of rows at the start that make up the state."""
    return self.blocks["mask"].start


def field_shapes(model: Model) -> dict[str, tuple[int, ...]]:
  """Return the shape of every field per environment, by MuJoCo's name."""
  nv, nbody = model.nv, model.nbody
  shapes: dict[str, tuple[int, ...]] = {
    "qpos": (model.nq,),
    "qvel": (nv,),
    "act": (model.na,),
    "past_ctrl": (past_rows(model),),
    "mocap_pos": (model.nmocap, 3),
    "mocap_quat": (model.nmocap, 4),
    "qacc_warmstart": (nv,),
    "mask": (),
  }
  shapes |= {
    "xpos": (nbody, 3),
    "xquat": (nbody, 4),
    "cvel": (nbody, 6),
    "cfrc_ext": (nbody, 6),
    "qM": (nv, nv),
  }
  forces = ("bias", "passive", "actuator", "smooth", "constraint")
  return (
    shapes
    | {"qacc": (nv,), "qacc_smooth": (nv,)}
    | {f"qfrc_{f}": (nv,) for f in forces}
    | dict.fromkeys(COUNTERS, ())
  )
