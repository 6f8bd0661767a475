"""Warm start of the solver: the last acceleration, extrapolated along the constraints' references.

A constraint pulls the acceleration a along its row to a reference, -b v - k d r of velocity v and position r
(manual, chapter Computation, section Constraint model). In a time h these change by h a and h v. So a row has
the residual of the last solution now at (1 - b h) qacc - k d h qvel, and a search that begins there begins
with the constraints that acted. At qacc itself a contact that brakes a fall would seem to separate: b h is
0.3 in Gymnasium's humanoid, and 1 in its ant.
"""

import functools

from physics.algebra.spatial import total
from physics.constraint.params import reference_constants
from physics.dynamics.kinematics import FREE
from physics.model.model import FEW_ITERATIONS, Model
from physics.model.pairs import MAX_IMPEDANCE, MIN_IMPEDANCE
from physics.trace.each import inner, replace
from physics.trace.trace import Array, Number, clip, is_zero, minimum, sqrt


def predict_acceleration(model: Model, qacc: Array, qvel: list[Number], elapsed: Number) -> None:
  """Move the last solution `qacc` [nv] on by a time [time steps]; `qvel` [nv] is the velocity now.

  The search then goes to the solution from wherever it begins, unless its iterations are few.
  """
  damping, stiffness = _reference(model)
  if model.iterations < FEW_ITERATIONS or is_zero(damping):
    return
  time = elapsed * model.timestep
  decay, rate = 1.0 - damping * time, stiffness * time
  # Free rotation would start far from its acceleration, and float32 would lose its digits.
  most = sqrt(inner(qacc.values(), qacc.values()))
  replace(qacc, lambda a, v: decay * a - clip(rate * v, -most, most), qacc.values(), qvel)


@functools.lru_cache(maxsize=8)
def _reference(model: Model) -> tuple[Number, Number]:
  """Return mean damping b [1/s] and stiffness k d [1/s^2] of contacts, or of limits if there are none."""
  contacts = {(*pair.solref, pair.solimp[1]) for pair in model.pairs}
  limited = (model.mj.jnt_limited > 0) & (model.mj.jnt_type != FREE)
  solref, solimp = model.mj.jnt_solref[limited], model.mj.jnt_solimp[limited]
  limits = {(*ref, imp[1]) for ref, imp in zip(solref.tolist(), solimp.tolist(), strict=True)}
  found = []
  for *ref, dmax in contacts or limits:
    impedance = clip(dmax, MIN_IMPEDANCE, MAX_IMPEDANCE)
    stiffness, damping = reference_constants(model, ref, impedance)
    # An acceleration falls to zero within a time step at most.
    found.append((minimum(damping, 1.0 / model.timestep), stiffness * impedance))
  count = max(1, len(found))
  return total(b for b, _ in found) / count, total(k for _, k in found) / count
