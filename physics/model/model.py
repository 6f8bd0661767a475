"""The model of a robot: the facts of a compiled file as plain arrays, under MuJoCo's names."""

import dataclasses
import difflib
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from physics.model.pairs import ContactPair

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]

ACTIVATIONS = ("filtered", "setpoint", "integral", "temperature", "bristle", "current")  # of an actuator


@dataclasses.dataclass(frozen=True, eq=False)
class Model:
  """The facts of a compiled model that the engine uses: MuJoCo's names, shapes, order and units.

  Arrays are read-only. Disable flags of the file are folded into the numbers where they can be (no gravity is
  `gravity == 0`, no springs is `jnt_stiffness == 0`, ...); the rest are the flags at the end. Damping and
  armature of joints and tendons include what actuators add to them.
  """

  nq: int
  nv: int
  nu: int
  na: int
  nactuator: int
  nmocap: int
  nbody: int
  njnt: int
  ngeom: int
  nsite: int
  nsensor: int
  nsensordata: int
  ntendon: int

  timestep: float  # [s]
  integrator: Literal["Euler", "RK4", "implicitfast"]
  gravity: Floats  # [3] [m/s^2]
  magnetic: Floats  # [3] what magnetometers measure
  density: float  # of the fluid around [kg/m^3]
  viscosity: float  # of the fluid around [Pa s]
  wind: Floats  # [3] velocity of the fluid around [m/s]
  iterations: int
  impratio: float
  cone: Literal["pyramidal", "elliptic"]  # of friction

  qpos0: Floats
  qpos_spring: Floats
  mocap_pos0: Floats  # [nmocap, 3]
  mocap_quat0: Floats  # [nmocap, 4]

  body_parentid: Ints
  body_rootid: Ints
  body_weldid: Ints  # body with the joints that move this one; 0 of what no joint moves, mocap bodies too
  body_mocapid: Ints  # number among the mocap bodies, -1 of others
  body_treeid: Ints
  body_jntnum: Ints
  body_jntadr: Ints
  body_dofnum: Ints
  body_dofadr: Ints
  body_pos: Floats
  body_quat: Floats
  body_ipos: Floats
  body_iquat: Floats
  body_mass: Floats
  body_inertia: Floats
  body_invweight0: Floats
  body_gravcomp: Floats
  body_simple: Ints  # 2: its joints are slides along the axes of its inertia

  jnt_type: Ints
  jnt_qposadr: Ints
  jnt_dofadr: Ints
  jnt_bodyid: Ints
  jnt_pos: Floats
  jnt_axis: Floats
  jnt_stiffness: Floats
  jnt_stiffnesspoly: Floats  # [njnt, 2] stiffness grows by (x, x^2) . poly
  jnt_limited: Bools
  jnt_range: Floats
  jnt_margin: Floats
  jnt_solref: Floats
  jnt_solimp: Floats
  jnt_actfrclimited: Bools
  jnt_actfrcrange: Floats
  jnt_actgravcomp: Bools

  dof_bodyid: Ints
  dof_jntid: Ints
  dof_parentid: Ints
  dof_armature: Floats
  dof_damping: Floats
  dof_dampingpoly: Floats  # [nv, 2] damping grows by (|v|, v^2) . poly
  dof_frictionloss: Floats
  dof_invweight0: Floats
  dof_solref: Floats
  dof_solimp: Floats

  geom_type: Ints
  geom_bodyid: Ints
  geom_pos: Floats
  geom_quat: Floats
  geom_size: Floats
  geom_rbound: Floats
  geom_priority: Ints
  geom_solmix: Floats
  geom_friction: Floats
  geom_solref: Floats
  geom_solimp: Floats

  pair_friction: Floats
  pair_solref: Floats
  pair_solreffriction: Floats
  pair_solimp: Floats
  geom_dataid: Ints

  site_bodyid: Ints
  site_pos: Floats
  site_quat: Floats
  site_type: Ints
  site_size: Floats

  tendon_adr: Ints
  tendon_num: Ints
  tendon_limited: Bools
  tendon_actfrclimited: Bools
  tendon_actfrcrange: Floats
  tendon_range: Floats
  tendon_margin: Floats
  tendon_solref_lim: Floats
  tendon_solimp_lim: Floats
  tendon_solref_fri: Floats
  tendon_solimp_fri: Floats
  tendon_frictionloss: Floats
  tendon_armature: Floats
  tendon_stiffness: Floats
  tendon_stiffnesspoly: Floats
  tendon_damping: Floats
  tendon_dampingpoly: Floats
  tendon_lengthspring: Floats  # [ntendon, 2] between these lengths the spring is slack
  tendon_length0: Floats
  tendon_invweight0: Floats
  wrap_objid: Ints  # joints that tendons are made of
  wrap_prm: Floats  # and their weights

  eq_type: Ints
  eq_objtype: Ints
  eq_obj1id: Ints
  eq_obj2id: Ints
  eq_active0: Bools
  eq_keeps_pose: Bools  # a weld that keeps the bodies' relative pose at qpos0
  eq_solref: Floats
  eq_solimp: Floats
  eq_data: Floats

  hfield_size: Floats  # [nhfield, 4] half sides along x and y, elevation of data 1, depth below 0 [m]
  hfield_nrow: Ints
  hfield_ncol: Ints
  hfield_adr: Ints
  hfield_data: Floats  # [nhfielddata] elevations of all height fields, 0 to 1

  actuator_trntype: Ints
  actuator_trnid: Ints  # [nactuator, 2] joint, tendon or site; site of reference, -1: none
  actuator_gear: Floats
  actuator_dyntype: Ints
  actuator_dynprm: Floats
  actuator_gaintype: Ints
  actuator_gainprm: Floats
  actuator_biastype: Ints
  actuator_biasprm: Floats
  actuator_enabled: Bools  # it is in no group that the file disables
  actuator_is_servo: Bools  # its gain is that of a position error
  actuator_ctrladr: Ints
  actuator_ctrlnum: Ints
  actuator_ctrlspec: Ints
  actuator_ctrllimited: Bools  # [nu]
  actuator_ctrlrange: Floats  # [nu, 2]
  actuator_delay: Floats  # [s]
  actuator_history: Ints  # [nactuator, 2] number of samples, kind of interpolation
  actuator_actadr: Ints
  actuator_actnum: Ints
  actuator_slots: Ints  # [nactuator, len(ACTIVATIONS)] place among its activations, -1: it has none
  actuator_actearly: Bools
  actuator_actlimited: Bools
  actuator_actrange: Floats
  actuator_forcelimited: Bools
  actuator_forcerange: Floats

  cam_bodyid: Ints
  cam_pos: Floats
  cam_quat: Floats

  sensor_type: Ints
  sensor_datatype: Ints
  sensor_objtype: Ints
  sensor_objid: Ints
  sensor_reftype: Ints
  sensor_refid: Ints
  sensor_intprm: Ints
  sensor_dim: Ints
  sensor_adr: Ints
  sensor_cutoff: Floats
  sensor_supported: Bools  # where sensordata is computed; the others stay zero

  key_qpos: Floats  # [nkey, nq] of the key frames
  key_ctrl: Floats  # [nkey, nu]

  body_names: tuple[str, ...]
  joint_names: tuple[str, ...]
  geom_names: tuple[str, ...]
  site_names: tuple[str, ...]
  tendon_names: tuple[str, ...]
  actuator_names: tuple[str, ...]
  sensor_names: tuple[str, ...]
  key_names: tuple[str, ...]

  actuation_enabled: bool
  eulerdamp: bool  # joint damping enters the velocity update implicitly
  contact_enabled: bool
  limit_enabled: bool
  frictionloss_enabled: bool
  warmstart_enabled: bool
  refsafe: bool  # time constants of constraints are at least two time steps

  varied: tuple[str, ...]  # fields of which every environment has its own
  pairs: tuple[ContactPair, ...]  # all geom pairs that can collide
  mj: Any  # mujoco.MjModel, the compiled model itself: for parity tests and people

  def body_id(self, name: str) -> int:
    """Return the id of the body called `name`; KeyError names the nearest."""
    return _find(self.body_names, "body", name)

  def joint_id(self, name: str) -> int:
    """Return the id of the joint called `name`; KeyError names the nearest."""
    return _find(self.joint_names, "joint", name)

  def geom_id(self, name: str) -> int:
    """Return the id of the geom called `name`; KeyError names the nearest."""
    return _find(self.geom_names, "geom", name)

  def site_id(self, name: str) -> int:
    """Return the id of the site called `name`; KeyError names the nearest."""
    return _find(self.site_names, "site", name)

  def key_id(self, name: str) -> int:
    """Return the id of the key frame called `name`; KeyError names the nearest."""
    return _find(self.key_names, "key frame", name)

  def actuator_id(self, name: str) -> int:
    """Return the id of the actuator called `name`; KeyError names the nearest."""
    return _find(self.actuator_names, "actuator", name)

  def sensor_slice(self, name: str) -> slice:
    """Return where sensordata has the numbers of the sensor called `name`; KeyError names the nearest."""
    sensor = _find(self.sensor_names, "sensor", name)
    start = int(self.sensor_adr[sensor])
    return slice(start, start + int(self.sensor_dim[sensor]))


def _find(names: tuple[str, ...], kind: str, name: str) -> int:
  if name in names:
    return names.index(name)
  near = difflib.get_close_matches(name, names, n=1, cutoff=0.0)
  raise KeyError(f"no {kind} {name!r}" + (f"; the nearest is {near[0]!r}" if near else ""))
