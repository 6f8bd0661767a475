"""States for comparing engines: drawn at random, or recorded along MuJoCo's trajectories."""

import dataclasses
from collections.abc import Iterator
from typing import Any

import mujoco
import numpy as np
import torch
from mujoco import mjtGeom, mjtJoint

from physics.collision.narrow import is_searched
from physics.model.model import Floats, Model
from physics.state.delay import delayed_controls, periodic_sensors, remembering_sensors

HOLD = 10  # steps for which a random control is held
FASTEST = 100.0  # [m/s, rad/s] faster states test their own rounding more than an engine
ENDLESS = 1000.0  # [m, rad] range of a joint that turns or slides without end, whatever its file says
DEEP = 0.005  # [m] overlap of searched shapes that a simulation hardly reaches, with several separations
TRIES = 6  # to draw a state without


@dataclasses.dataclass(frozen=True)
class States:
  """States and controls of a model, one per row; all are float32 numbers, except history and time.

  Fields that are None have the model's initial values.
  """

  qpos: Floats  # [num_states, nq]
  qvel: Floats  # [num_states, nv]
  ctrl: Floats  # [num_states, nu]
  act: Floats | None = None  # [num_states, na]
  plastic: Floats | None = None  # [num_states, nplastic]
  mocap_pos: Floats | None = None  # [num_states, nmocap, 3]
  mocap_quat: Floats | None = None  # [num_states, nmocap, 4]
  qacc_warmstart: Floats | None = None  # [num_states, nv]
  history: Floats | None = None  # [num_states, nhistory]
  time: Floats | None = None  # [num_states, 1]

  def __len__(self) -> int:
    return len(self.qpos)

  def __getitem__(self, rows: Any) -> "States":
    """Return the states of some rows, given like an index of an array."""
    fields = ((field.name, getattr(self, field.name)) for field in dataclasses.fields(self))
    return States(**{name: values[rows] for name, values in fields if values is not None})

  def parts(self) -> Iterator[tuple[str, Floats]]:
    """Yield name and values of each field that is given."""
    for field in dataclasses.fields(self):
      values = getattr(self, field.name)
      if values is not None and values.size:
        yield field.name, values

  def write_to(self, simulation: Any) -> None:
    """Write these states to a simulation after its reset; only MuJoCo's has the times of history."""
    for name, values in self.parts():
      if hasattr(simulation, name):
        getattr(simulation, name)[:] = torch.from_numpy(values)
      elif name == "history":
        simulation.past_ctrl[:] = torch.from_numpy(past_controls(simulation.model, values))
        simulation.past_sensordata[:] = torch.from_numpy(past_measurements(simulation.model, values))
        if self.time is not None:
          waits = sensor_waits(simulation.model, values, self.time)
          simulation.sensor_wait[:] = torch.from_numpy(waits)

  def load(self, index: int, data: mujoco.MjData) -> None:
    """Write one of the states to MuJoCo's data after its reset."""
    for name, values in self.parts():
      if name == "time":
        data.time = values[index, 0]
      else:
        getattr(data, name)[:] = values[index]

  @staticmethod
  def of(rows: list[dict[str, Floats]]) -> "States":
    """Collect rows that `_snapshot` returned."""
    fields = {name: np.stack([row[name] for row in rows]) for name in rows[0]}
    exact = ("history", "time")
    return States(**{n: v if n in exact else v.astype(np.float32).astype(float) for n, v in fields.items()})


def past_controls(model: Model, history: Floats) -> Floats:
  """Return the delayed controls [num_states, rows], oldest first, of MuJoCo's ring buffers [num_states, n].

  A buffer holds a user's number, the index of the newest sample, the samples' times, the samples.
  """
  columns = [np.empty((len(history), 0))]
  for control, actuator in delayed_controls(model).items():
    count, width = int(model.actuator_history[actuator, 0]), int(model.actuator_ctrlnum[actuator])
    first = int(model.mj.actuator_historyadr[actuator])
    samples = first + 2 + count + (control - int(model.actuator_ctrladr[actuator]))
    columns.append(_in_order(history, first, count, samples, width))
  return np.concatenate(columns, axis=1)


def past_measurements(model: Model, history: Floats) -> Floats:
  """Return the samples [num_states, rows] that sensors keep, oldest first, of MuJoCo's ring buffers."""
  columns = [np.empty((len(history), 0))]
  for sensor, kept in remembering_sensors(model).items():
    count, width = int(model.sensor_history[sensor, 0]), int(model.sensor_dim[sensor])
    first = int(model.mj.sensor_historyadr[sensor])
    samples = [_in_order(history, first, count, first + 2 + count + k, width) for k in range(width)]
    columns += [each[:, -kept:] for each in samples]
  return np.concatenate(columns, axis=1)


def sensor_waits(model: Model, history: Floats, time: Floats) -> Floats:
  """Return the waits [num_states, rows] [time steps] of periodic sensors, from MuJoCo's ring buffers.

  The user's number of a buffer is the time [s] of the last measurement; where intervals are shorter than time
  steps, it falls behind.
  """
  sensors = periodic_sensors(model)
  period, last = model.sensor_interval[sensors, 0], history[:, model.mj.sensor_historyadr[sensors]]
  return np.where(period > model.timestep, last + period - time, 0.0) / model.timestep


def _in_order(history: Floats, first: int, count: int, samples: int, width: int) -> Floats:
  """Return `count` samples [num_states, count] of a ring buffer, oldest first; `width` numbers apart."""
  order = (history[:, [first + 1]].astype(int) + 1 + np.arange(count)) % count
  return np.take_along_axis(history, samples + width * order, axis=1)


def random_states(model: Model, count: int, seed: int = 0) -> States:
  """Return a mixture of states: in the air, on the ground, in self-contact, beyond limits, in motion.

  Half are ends of rollouts of up to a second with random controls; half of the others have their free bodies
  lowered onto the nearest plane. Limited joints reach a tenth of their range beyond their limits. Where
  searched shapes overlap deeply, as arms of meshes do that pass through themselves, another state is drawn,
  half as far from the initial pose; of TRIES such states the one with the least overlap is taken.
  """
  random = np.random.default_rng(seed)
  data, overlap = mujoco.MjData(model.mj), _Overlap(model)
  rows: list[dict[str, Floats]] = []
  for index in range(count):
    drawn: list[tuple[float, dict[str, Floats]]] = []
    while len(drawn) < TRIES and (not drawn or drawn[-1][0] > DEEP):
      row = _random_state(model, data, random, index % 4, 0.5 ** len(drawn))
      drawn.append((overlap.of(row), row))
    rows.append(min(drawn, key=lambda each: each[0])[1])
  return States.of(rows)


def _random_state(
  model: Model, data: mujoco.MjData, random: np.random.Generator, kind: int, reach: float
) -> dict[str, Floats]:
  """Draw a state: in the air (0), lowered onto planes (1) or the end of a rollout (2, 3)."""
  mujoco.mj_resetData(model.mj, data)
  _randomize(model, data, random, reach)
  if kind == 1:
    _lower_onto_planes(model, data, random)
  row = _snapshot(data)
  if kind > 1:
    mujoco.mj_step(model.mj, data, int(random.uniform(0, 1) / model.timestep))
    data.qacc_warmstart[:] = 0.0
    if _is_tame(data):
      row = _snapshot(data)
  return row


def recorded_states(model: Model, count: int, steps: int = 64, seed: int = 0) -> States:
  """Return the states, warm starts included, before each step of MuJoCo's trajectories under random controls.

  A trajectory ends after `steps` steps, or when its velocities become too large. Where searched shapes
  overlap deeply it ends too, and the next one begins half as far from the initial pose.
  """
  random = np.random.default_rng(seed)
  data, overlap = mujoco.MjData(model.mj), _Overlap(model)
  rows: list[dict[str, Floats]] = []
  failed = 0
  while len(rows) < count:
    mujoco.mj_resetData(model.mj, data)
    _randomize(model, data, random, 0.5 ** (failed % TRIES))
    for step in range(min(steps, count - len(rows))):
      if not _is_tame(data):
        break
      if failed < TRIES and overlap.of(_snapshot(data)) > DEEP:
        failed += 1
        break
      if step % HOLD == 0:
        data.ctrl[:] = random_controls(model, random)
      rows.append(_snapshot(data))
      mujoco.mj_step(model.mj, data)
  return States.of(rows)


class _Overlap:
  """The depth at which searched shapes of a model overlap.

  Deeper than DEEP, a search has several separations that are nearly as short: MuJoCo C and the engine may
  take different ones, and both be right.
  """

  def __init__(self, model: Model) -> None:
    self._mj, self._data = model.mj, mujoco.MjData(model.mj)
    self._searched = {frozenset((pair.geom1, pair.geom2)) for pair in model.pairs if is_searched(model, pair)}

  def of(self, row: dict[str, Floats]) -> float:
    """Return the greatest overlap [m] in a state."""
    if not self._searched:
      return 0.0
    States.of([row]).load(0, self._data)
    mujoco.mj_fwdPosition(self._mj, self._data)
    touching = ((each.dist, frozenset(each.geom.tolist())) for each in self._data.contact)
    return max((-distance for distance, geoms in touching if geoms in self._searched), default=0.0)


def _snapshot(data: mujoco.MjData) -> dict[str, Floats]:
  return {field.name: np.array(getattr(data, field.name), ndmin=1) for field in dataclasses.fields(States)}


def _is_tame(data: mujoco.MjData) -> bool:
  values = (data.qpos, data.qvel, data.act, data.qacc_warmstart)
  return all(np.isfinite(v).all() for v in values) and bool(np.abs(data.qvel).max(initial=0) < FASTEST)


def _randomize(model: Model, data: mujoco.MjData, random: np.random.Generator, reach: float = 1.0) -> None:
  """Draw pose, velocity, activations, controls and poses of mocap bodies; `reach` is the spread of poses."""
  data.qpos[:] = _random_pose(model, random, reach)
  data.qvel[:] = random.normal(size=model.nv)
  data.ctrl[:] = random_controls(model, random)
  data.act[:] = random.uniform(-0.5, 0.5, size=data.act.shape)
  _bend(model, data, random)
  data.mocap_pos[:] += reach * 0.05 * random.normal(size=data.mocap_pos.shape)
  for quaternion in data.mocap_quat:
    mujoco.mju_mulQuat(quaternion, quaternion.copy(), _random_rotation(random, reach * 0.3))


def _bend(model: Model, data: mujoco.MjData, random: np.random.Generator) -> None:
  """Bend plastic springs: a tendon's slack range keeps its width, and a rope's its lower end."""
  for joint, at in enumerate(model.jnt_plasticadr):
    if at >= 0 and model.jnt_type[joint] == mjtJoint.mjJNT_BALL:
      data.plastic[at : at + 4] = _random_rotation(random, 1.0)
    elif at >= 0:
      data.plastic[at] += 0.2 * random.normal()
  for at in model.tendon_plasticadr[model.tendon_plasticadr >= 0]:
    low, high = data.plastic[at : at + 2]
    data.plastic[at : at + 2] += 0.1 * random.uniform() * np.array([low != 0.0 or high == 0.0, 1.0])


def _random_pose(model: Model, random: np.random.Generator, reach: float) -> Floats:
  qpos = model.qpos0.copy()
  for joint in range(model.njnt):
    at, kind = model.jnt_qposadr[joint], mjtJoint(model.jnt_type[joint])
    low, high = model.jnt_range[joint]
    if kind in (mjtJoint.mjJNT_HINGE, mjtJoint.mjJNT_SLIDE):
      if model.jnt_limited[joint] and high - low < ENDLESS:
        anywhere = random.uniform(low - 0.1 * (high - low), high + 0.1 * (high - low))
        qpos[at] = reach * anywhere + (1.0 - reach) * qpos[at]
      else:
        qpos[at] += reach * 0.5 * random.normal()
      continue
    if kind == mjtJoint.mjJNT_FREE:
      qpos[at : at + 3] += reach * 0.2 * random.normal(size=3)
      at += 3
    limit = high if model.jnt_limited[joint] else np.pi / 1.1
    qpos[at : at + 4] = _random_rotation(random, reach * 1.1 * limit)
  return qpos


def _random_rotation(random: np.random.Generator, limit: float) -> Floats:
  """Return the quaternion of a turn by up to `limit` [rad] about any axis."""
  axis, angle = random.normal(size=3), random.uniform(0, limit)
  return np.array([np.cos(angle / 2), *(np.sin(angle / 2) * axis / np.linalg.norm(axis))])


def random_controls(model: Model, random: np.random.Generator) -> Floats:
  """Return random controls, up to a tenth of their ranges beyond them, which tests clamping."""
  limited = model.actuator_ctrllimited[:, None]
  low, high = np.where(limited, model.actuator_ctrlrange, np.array([-1.0, 1.0])).T
  return (low + high) / 2 + random.uniform(-0.6, 0.6, size=model.nu) * (high - low)


def _lower_onto_planes(model: Model, data: mujoco.MjData, random: np.random.Generator) -> None:
  """Move each free body along the normal of the nearest plane until its tree touches, 2 cm deep at most."""
  mujoco.mj_kinematics(model.mj, data)
  planes = [geom for geom in range(model.ngeom) if model.geom_type[geom] == mjtGeom.mjGEOM_PLANE.value]
  free = [joint for joint in range(model.njnt) if model.jnt_type[joint] == mjtJoint.mjJNT_FREE.value]
  for joint in free if planes else ():
    tree = model.body_treeid[model.jnt_bodyid[joint]]
    geoms = [geom for geom in range(model.ngeom) if model.body_treeid[model.geom_bodyid[geom]] == tree]
    heights = [
      (mujoco.mj_geomDistance(model.mj, data, plane, geom, 100.0, None), plane)
      for plane in planes
      for geom in geoms
    ]
    height, plane = min(heights)
    at = model.jnt_qposadr[joint]
    data.qpos[at : at + 3] -= (height + random.uniform(-0.005, 0.02)) * data.geom_xmat[plane].reshape(3, 3)[
      :, 2
    ]
