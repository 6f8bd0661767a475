"""The layout of the state memory `[row, env]`: the rows of each field."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from physics.model.model import Model
from physics.state.delay import past_rows, past_sensor_rows, periodic_sensors
from physics.state.reduction import LAST, REDUCTIONS

# Everything that the future depends on, controls aside.
STATE = (
  "time",
  "qpos",
  "qvel",
  "act",
  "plastic",
  "past_ctrl",
  "past_sensordata",
  "sensor_wait",
  "mocap_pos",
  "mocap_quat",
  "qacc_warmstart",
)
# Rows that hold the bits of an int32.
COUNTERS = ("contact_count", "overflow", "solver_niter", "stalled", "diverged")
DEFAULT_OUTPUTS = ("qacc", "xpos", "xquat", "cfrc_ext", *COUNTERS)

CLOCK = 45  # mjtSensor

OutputSpec: TypeAlias = Sequence[str] | Mapping[str, str]


@dataclass(frozen=True)
class Block:
  """The consecutive rows of one field."""

  start: int
  shape: tuple[int, ...]

  @property
  def rows(self) -> int:
    """Number of rows."""
    return math.prod(self.shape)


class Layout:
  """The rows of every field of one simulation, in memory order: state, mask, outputs.

  `outputs` are names, or a mapping from names to the reduction over a launch's time steps: "last" (the
  default), "mean" or "max". The counters are always included: nothing is dropped in silence.
  """

  def __init__(self, model: Model, outputs: OutputSpec = DEFAULT_OUTPUTS) -> None:
    shapes = field_shapes(model)
    known = [name for name in shapes if name not in (*STATE, "mask")]
    for name in outputs:
      if name not in known or list(outputs).count(name) > 1:
        fault = "is named twice" if name in known else f"is unknown; outputs are: {', '.join(known)}"
        raise ValueError(f"output {name!r} {fault}")
    asked = outputs if isinstance(outputs, Mapping) else dict.fromkeys(outputs, LAST)
    self.outputs = {**asked, **{name: LAST for name in COUNTERS if name not in asked}}
    for name, reduction in self.outputs.items():
      if reduction not in (LAST, *REDUCTIONS):
        raise ValueError(f"output {name!r}: {reduction!r} is none of {', '.join((LAST, *REDUCTIONS))}")
    self.blocks: dict[str, Block] = {}
    self.rows = 0
    for name in (*STATE, "mask", *self.outputs):
      self.blocks[name] = Block(self.rows, shapes[name])
      self.rows += self.blocks[name].rows

  def __contains__(self, name: str) -> bool:
    return name in self.blocks

  @property
  def state_rows(self) -> int:
    """Number of rows at the start that make up the state."""
    return self.blocks["mask"].start


def default_outputs(model: Model) -> tuple[str, ...]:
  """Return the outputs of a simulation by default: `DEFAULT_OUTPUTS`, and sensors if the model has some."""
  return DEFAULT_OUTPUTS + (("sensordata",) if model.nsensor else ())


def time_rows(model: Model) -> int:
  """Return 1 if something depends on the time since the reset, else 0."""
  return int((model.sensor_supported & (model.sensor_type == CLOCK)).any())


def field_shapes(model: Model) -> dict[str, tuple[int, ...]]:
  """Return the shape of every field per environment, by MuJoCo's name."""
  nv, nbody = model.nv, model.nbody
  state: dict[str, tuple[int, ...]] = {
    "time": (time_rows(model),),
    "qpos": (model.nq,),
    "qvel": (nv,),
    "act": (model.na,),
    "plastic": (model.nplastic,),
    "past_ctrl": (past_rows(model),),
    "past_sensordata": (past_sensor_rows(model),),
    "sensor_wait": (len(periodic_sensors(model)),),
    "mocap_pos": (model.nmocap, 3),
    "mocap_quat": (model.nmocap, 4),
    "qacc_warmstart": (nv,),
    "mask": (),
  }
  frames = {"x": nbody, "xi": nbody, "geom_x": model.ngeom, "site_x": model.nsite}
  bodies = {"cvel": 6, "cacc": 6, "cinert": 10, "cfrc_ext": 6, "cfrc_int": 6}
  subtrees = ("com", "linvel", "angmom")
  forces = ("bias", "passive", "actuator", "smooth", "constraint")
  return (
    state
    | {f"{frame}pos": (count, 3) for frame, count in frames.items()}
    | {f"{frame}mat": (count, 9) for frame, count in frames.items()}
    | {"xquat": (nbody, 4), "qM": (nv, nv)}
    | {name: (nbody, width) for name, width in bodies.items()}
    | {f"subtree_{name}": (nbody, 3) for name in subtrees}
    | {"qacc": (nv,), "qacc_smooth": (nv,)}
    | {f"qfrc_{f}": (nv,) for f in forces}
    | {f"actuator_{name}": (model.nactuator,) for name in ("length", "velocity", "force")}
    | {f"ten_{name}": (model.ntendon,) for name in ("length", "velocity")}
    | {"energy": (2,), "sensordata": (model.nsensordata,)}
    | dict.fromkeys(COUNTERS, ())
  )
