"""Identity of a model: the names of its joints and controls, and digests of its fields."""

import dataclasses
import hashlib
import re
from typing import Any

import numpy as np

from physics.model.model import Model

# Fields that long computations derive from others, or that no robot file has.
DERIVED = re.compile(
  r".*(invweight0|acc0|length0|lengthrange|iquat|rbound|fluid|com0|mat0|plastic.*)|cam_pos0|geom_dataid|"
  "sensor_supported|varied|pairs|left_out|mj"
)
MESH, DRIVEN = 7, ("joint", "joint", "site", "tendon", "site", "body")  # by mjtGeom, and by mjtTrn
ROUNDING = 1e-12  # smaller numbers count as zero, relative to the largest of a field


def identity(model: Model) -> dict[str, Any]:
  """Return the names of joints and controls, in order, and a digest of each field of the model.

  Digests take five decimal digits, and nothing that depends on the axes of a mesh's inertia: they are
  the same on any machine, wherever the file lies.
  """
  values = {field.name: getattr(model, field.name) for field in dataclasses.fields(model)}
  names = {
    kind: [name or f"number {index}" for index, name in enumerate(values[f"{kind}_names"])]
    for kind in ("actuator", *DRIVEN)
  }
  kinds = map(DRIVEN.__getitem__, model.actuator_trntype)
  driven = zip(names["actuator"], kinds, model.actuator_trnid[:, 0], strict=True)
  controls = [f"{name} of {kind} {names[kind][target]}" for name, kind, target in driven]
  counts, meshes = model.actuator_ctrlnum, model.geom_type[:, None] == MESH
  values |= {name: np.where(meshes, 0.0, values[name]) for name in ("geom_pos", "geom_quat", "geom_size")}
  for name, numbers in (("hfield_data", model.hfield_data), ("mesh_vert", model.mj.mesh_vert)):  # float32
    values[name] = f"{np.square(numbers, dtype=np.float64).sum():.4g}"
  digests = {name: _digest(value) for name, value in values.items() if not DERIVED.fullmatch(name)}
  return {"joint": names["joint"], "control": np.repeat(controls, counts).tolist(), "model": digests}


def _digest(value: Any) -> str:
  if isinstance(value, np.ndarray):
    least = ROUNDING * np.abs(value[np.isfinite(value)]).max(initial=1e-3)
    value = [f"{number:.5g}" for number in np.where(np.abs(value) > least, value, 0).ravel().tolist()]
  return hashlib.sha256(repr(value).encode()).hexdigest()[:8]
