"""Gaps: contacts between their margin and the distance up to which they are detected.

Most contacts only exist there. Those with adhesion act, without friction, as contacts of condim 1.

Source: MuJoCo's manual, chapter Computation, section Constraint model (Adhesion); XML Reference, geom/gap and
geom/adhesion.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from physics.actuator.transmission import adhesive_bodies
from physics.model.model import Model
from physics.model.pairs import ContactPair
from physics.trace.column import Column
from physics.trace.trace import Integer, Number, Program, Truth, where

FRICTIONLESS = {"friction": 0.0, "spin": 0.0} | {f"share{j}": 1.0 for j in range(1, 6)}  # fields of condim 1


class Gap:
  """The fields of a contact of one family's pairs that depend on whether it is in its gap."""

  def __init__(self, program: Program, model: Model, pairs: Sequence[ContactPair]) -> None:
    self.counts = bool(adhesive_bodies(model))  # actuators share their force among contacts in the gap too
    self.ends = any(pair.reach > pair.limit for pair in pairs)
    self.sticks = any(pair.limit > pair.margin for pair in pairs)
    self.limits = Column(program, [pair.limit for pair in pairs])

  def fields(self, pair: Integer | Number, active: Truth, entry: Mapping[str, Any]) -> dict[str, Number]:
    """Return the fields of an entry that differ from the pair's; the weight is zero where it does not act."""
    acts = active & (entry["distance"] < self.limits[pair]) if self.ends else active
    fields = {"found": where(active, 1.0, 0.0)} if self.counts else {}
    weight = entry["weight"]
    if self.sticks:
      near = entry["distance"] < entry["margin"]
      weight = where(near, weight, entry["gap_weight"])
      fields["pull"] = where(near, entry["pull"], entry["gap_pull"])
      fields |= {name: where(near, entry[name], x) for name, x in FRICTIONLESS.items() if name in entry}
    return fields | {"weight": where(acts, weight, 0.0)}
