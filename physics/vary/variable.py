"""Fields of a model that may differ between environments."""

from collections.abc import Sequence

from physics.model.spelling import nearest_word

INERTIAL = ("body_mass", "body_inertia", "body_ipos", "body_iquat", "dof_armature", "tendon_armature")
OF_PAIRS = tuple(f"{kind}_{name}" for kind in ("geom", "pair") for name in ("friction", "solref", "solimp"))
VARIABLE = (
  *INERTIAL,
  "gravity",
  "geom_size",
  "geom_surfacevel",
  *OF_PAIRS,
  *(f"jnt_{name}" for name in ("stiffness", "range", "solref", "solimp")),
  *(f"dof_{name}" for name in ("damping", "frictionloss", "solref", "solimp")),
  *(f"actuator_{name}" for name in ("gainprm", "biasprm", "ctrlrange", "forcerange")),
  *(f"eq_{name}" for name in ("data", "solref", "solimp")),
)


def check_varied(names: Sequence[str]) -> tuple[str, ...]:
  """Return the names of fields to vary; ValueError names one that cannot be."""
  for name in names:
    if name not in VARIABLE:
      near = nearest_word(name, VARIABLE)
      raise ValueError(f"vary: {name!r} cannot vary; the nearest that can is {near!r}")
  return tuple(dict.fromkeys(names))
