"""The model of a robot: the facts of a compiled file as plain arrays, under MuJoCo's names."""

import dataclasses
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from physics.model.pairs import ContactPair
from physics.model.spelling import nearest_word

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]

ACTIVATIONS = ("filtered", "setpoint", "integral", "temperature", "bristle", "current")  # of an actuator
FEW_ITERATIONS = 10  # with fewer, the answer of the solver depends on where it starts


@dataclasses.dataclass(frozen=True, eq=False)
class Model:
  """The facts of a compiled model that the engine uses: MuJoCo's names, shapes, order and units.

  Arrays are read-only. Disable flags of the file are folded into the numbers where they can be (no gravity is
  `gravity == 0`, no springs is `jnt_stiffness == 0`, ...); the rest are the flags at the end. Damping and
  armature of joints and tendons include what actuators add to them.

  The comment of each array gives its shape, in MuJoCo's sizes, and its unit. [1] is a pure number; [varies]
  depends on the element's type; several units belong to the columns. `solref` is a time constant and a
  damping ratio, or, if negative, -stiffness [1/s^2] and -damping [1/s]. `solimp` is d0, d_width, width,
  midpoint and power.
  """

  nq: int  # positions: 7 of a free joint, 4 of a ball, 1 of a slide or hinge
  nv: int  # degrees of freedom, the velocities
  nu: int  # controls
  na: int  # activations
  nactuator: int  # an actuator may have several controls
  nplastic: int  # numbers that say where plastic springs rest
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
  magnetic: Floats  # [3] [varies] magnetic flux, in the unit of magnetometers
  density: float  # [kg/m^3] of the surrounding fluid
  viscosity: float  # [Pa s] of the surrounding fluid
  wind: Floats  # [3] [m/s] velocity of the surrounding fluid
  iterations: int
  noslip_iterations: int
  noslip_tolerance: float  # [1] gain of cost over the trace of the inertia at which these iterations end
  impratio: float  # [1] ratio of frictional to normal impedance
  cone: Literal["pyramidal", "elliptic"]  # of friction

  qpos0: Floats  # [nq] [m or rad] and quaternions
  qpos_spring: Floats  # [nq] [m or rad] and quaternions where springs rest
  plastic0: Floats  # [nplastic] [m or rad] and quaternions where plastic springs rest at first
  mocap_pos0: Floats  # [nmocap, 3] [m]
  mocap_quat0: Floats  # [nmocap, 4] [1]

  body_parentid: Ints  # [nbody]
  body_rootid: Ints  # [nbody]
  body_weldid: Ints  # [nbody] body with the joints that move this one; 0: no joint does, as for mocap bodies
  body_mocapid: Ints  # [nbody] index among the mocap bodies, -1: none of them
  body_treeid: Ints  # [nbody] -1: no joint moves it
  body_jntnum: Ints  # [nbody]
  body_jntadr: Ints  # [nbody] first joint, -1: none
  body_dofnum: Ints  # [nbody]
  body_dofadr: Ints  # [nbody] first degree of freedom, -1: none
  body_pos: Floats  # [nbody, 3] [m] in the parent
  body_quat: Floats  # [nbody, 4] [1] in the parent
  body_ipos: Floats  # [nbody, 3] [m] centre of mass
  body_iquat: Floats  # [nbody, 4] [1] axes of the inertia
  body_mass: Floats  # [nbody] [kg]
  body_inertia: Floats  # [nbody, 3] [kg m^2] along those axes
  body_invweight0: Floats  # [nbody, 2] [1/kg, 1/(kg m^2)]
  body_gravcomp: Floats  # [nbody] [1] part of the weight that is compensated
  body_simple: Ints  # [nbody] 2: its joints are slides along the axes of its inertia

  jnt_type: Ints  # [njnt]
  jnt_qposadr: Ints  # [njnt] first index in qpos
  jnt_dofadr: Ints  # [njnt] first index in qvel
  jnt_bodyid: Ints  # [njnt]
  jnt_pos: Floats  # [njnt, 3] [m] in the body
  jnt_axis: Floats  # [njnt, 3] [1] in the body
  jnt_stiffness: Floats  # [njnt] [N/m or N m/rad]
  jnt_stiffnesspoly: Floats  # [njnt, 2] [N/m^2, N/m^3] of a slide; stiffness grows by (x, x^2) . poly
  jnt_springyield: Floats  # [njnt] [m or rad] deflection at which a plastic spring yields
  jnt_plasticadr: Ints  # [njnt] first of a plastic spring's numbers, -1: elastic
  jnt_limited: Bools  # [njnt]
  jnt_range: Floats  # [njnt, 2] [m or rad]
  jnt_margin: Floats  # [njnt] [m or rad]
  jnt_solref: Floats  # [njnt, 2] [s, 1]
  jnt_solimp: Floats  # [njnt, 5] [1, 1, m or rad, 1, 1]
  jnt_actfrclimited: Bools  # [njnt]
  jnt_actfrcrange: Floats  # [njnt, 2] [N or N m]
  jnt_actgravcomp: Bools  # [njnt]

  dof_bodyid: Ints  # [nv]
  dof_jntid: Ints  # [nv]
  dof_parentid: Ints  # [nv] -1: none
  dof_armature: Floats  # [nv] [kg or kg m^2]
  dof_damping: Floats  # [nv] [N s/m or N m s/rad]
  dof_dampingpoly: Floats  # [nv, 2] [N s^2/m^2, N s^3/m^3] of a slide; damping grows by (|v|, v^2) . poly
  dof_frictionloss: Floats  # [nv] [N or N m]
  dof_invweight0: Floats  # [nv] [1/kg or 1/(kg m^2)]
  dof_solref: Floats  # [nv, 2] [s, 1] of frictionloss
  dof_solimp: Floats  # [nv, 5] [1, 1, m or rad, 1, 1]

  geom_type: Ints  # [ngeom]
  geom_bodyid: Ints  # [ngeom]
  geom_dataid: Ints  # [ngeom] mesh or height field, -1: none
  geom_pos: Floats  # [ngeom, 3] [m] in the body
  geom_quat: Floats  # [ngeom, 4] [1] in the body
  geom_size: Floats  # [ngeom, 3] [m]
  geom_rbound: Floats  # [ngeom] [m] radius of the bounding sphere, 0: a plane
  geom_priority: Ints  # [ngeom]
  geom_solmix: Floats  # [ngeom] [1] weight where solref and solimp of two geoms mix
  geom_friction: Floats  # [ngeom, 3] [1, m, m] sliding, torsional, rolling
  geom_solref: Floats  # [ngeom, 2] [s, 1]
  geom_solimp: Floats  # [ngeom, 5] [1, 1, m, 1, 1]
  geom_surfacevel: Floats  # [ngeom, 6] [m/s, rad/s] of the surface: linear and angular, in the geom
  geom_fluid: Floats  # [ngeom, 12] [1, m^3, m^5] 1: an ellipsoid; 5 coefficients; added volume and moments

  pair_friction: Floats  # [npair, 5] [1, 1, m, m, m] two sliding, one torsional, two rolling
  pair_solref: Floats  # [npair, 2] [s, 1]
  pair_solreffriction: Floats  # [npair, 2] [s, 1] zero: as solref
  pair_solimp: Floats  # [npair, 5] [1, 1, m, 1, 1]

  site_bodyid: Ints  # [nsite]
  site_pos: Floats  # [nsite, 3] [m] in the body
  site_quat: Floats  # [nsite, 4] [1] in the body
  site_type: Ints  # [nsite]
  site_size: Floats  # [nsite, 3] [m]

  tendon_adr: Ints  # [ntendon] first index in wrap_objid
  tendon_num: Ints  # [ntendon] number of joints, or of sites, geoms and pulleys
  tendon_limited: Bools  # [ntendon]
  tendon_actfrclimited: Bools  # [ntendon]
  tendon_actfrcrange: Floats  # [ntendon, 2] [N or N m]
  tendon_range: Floats  # [ntendon, 2] [m or rad]
  tendon_margin: Floats  # [ntendon] [m or rad]
  tendon_solref_lim: Floats  # [ntendon, 2] [s, 1]
  tendon_solimp_lim: Floats  # [ntendon, 5] [1, 1, m or rad, 1, 1]
  tendon_solref_fri: Floats  # [ntendon, 2] [s, 1]
  tendon_solimp_fri: Floats  # [ntendon, 5] [1, 1, m or rad, 1, 1]
  tendon_frictionloss: Floats  # [ntendon] [N or N m]
  tendon_armature: Floats  # [ntendon] [kg or kg m^2]
  tendon_stiffness: Floats  # [ntendon] [N/m or N m/rad]
  tendon_stiffnesspoly: Floats  # [ntendon, 2] [N/m^2, N/m^3] of slides
  tendon_damping: Floats  # [ntendon] [N s/m or N m s/rad]
  tendon_dampingpoly: Floats  # [ntendon, 2] [N s^2/m^2, N s^3/m^3] of slides
  tendon_lengthspring: Floats  # [ntendon, 2] [m or rad] between these lengths the spring is slack
  tendon_springyield: Floats  # [ntendon] [m or rad] stretch at which a plastic spring yields
  tendon_plasticadr: Ints  # [ntendon] first of a plastic spring's numbers, -1: elastic
  tendon_length0: Floats  # [ntendon] [m or rad] at qpos0
  tendon_invweight0: Floats  # [ntendon] [1/kg or 1/(kg m^2)]
  wrap_type: Ints  # [nwrap] mjtWrap: elements of tendons
  wrap_objid: Ints  # [nwrap] joints, sites and geoms
  wrap_prm: Floats  # [nwrap] [varies] weights of joints, divisors of pulleys, side sites of geoms

  eq_type: Ints  # [neq]
  eq_objtype: Ints  # [neq]
  eq_obj1id: Ints  # [neq]
  eq_obj2id: Ints  # [neq]
  eq_active0: Bools  # [neq]
  eq_keeps_pose: Bools  # [neq] a weld that keeps the bodies' relative pose at qpos0
  eq_solref: Floats  # [neq, 2] [s, 1]
  eq_solimp: Floats  # [neq, 5] [1, 1, m or rad, 1, 1]
  eq_data: Floats  # [neq, 12] [varies]

  hfield_size: Floats  # [nhfield, 4] [m] half sides along x and y, elevation of data 1, depth below 0
  hfield_nrow: Ints  # [nhfield]
  hfield_ncol: Ints  # [nhfield]
  hfield_adr: Ints  # [nhfield] first index in hfield_data
  hfield_data: Floats  # [nhfielddata] [1] elevations of all height fields, 0 to 1

  actuator_trntype: Ints  # [nactuator]
  actuator_trnid: Ints  # [nactuator, 2] joint, tendon or site; site of reference or slider, -1: none
  actuator_cranklength: Floats  # [nactuator] [m] of the rod between crank and slider
  actuator_gear: Floats  # [nactuator, 6] [varies]
  actuator_lengthrange: Floats  # [nactuator, 2] [m or rad] of muscles
  actuator_acc0: Floats  # [nactuator] [1/kg or 1/(kg m)] norm of the acceleration by a unit force at qpos0
  actuator_dyntype: Ints  # [nactuator]
  actuator_dynprm: Floats  # [nactuator, 10] [varies]
  actuator_gaintype: Ints  # [nactuator]
  actuator_gainprm: Floats  # [nactuator, 10] [varies]
  actuator_biastype: Ints  # [nactuator]
  actuator_biasprm: Floats  # [nactuator, 10] [varies]
  actuator_enabled: Bools  # [nactuator] false where the file disables its group
  actuator_is_servo: Bools  # [nactuator] whether its gain multiplies a position error
  actuator_ctrladr: Ints  # [nactuator] first control
  actuator_ctrlnum: Ints  # [nactuator]
  actuator_ctrlspec: Ints  # [nactuator] bits: kinds of its controls (mjtCtrlInput)
  actuator_ctrllimited: Bools  # [nu]
  actuator_ctrlrange: Floats  # [nu, 2] [varies]
  actuator_delay: Floats  # [nactuator] [s]
  actuator_history: Ints  # [nactuator, 2] number of samples, kind of interpolation
  actuator_actadr: Ints  # [nactuator] first activation, -1: none
  actuator_actnum: Ints  # [nactuator]
  actuator_slots: Ints  # [nactuator, 6] slot of each of ACTIVATIONS among its own, -1: it has none
  actuator_actearly: Bools  # [nactuator]
  actuator_actlimited: Bools  # [nactuator]
  actuator_actrange: Floats  # [nactuator, 2] [varies]
  actuator_forcelimited: Bools  # [nactuator]
  actuator_forcerange: Floats  # [nactuator, 2] [N or N m]

  cam_mode: Ints  # [ncam]
  cam_bodyid: Ints  # [ncam]
  cam_targetbodyid: Ints  # [ncam] body that it looks at, -1: none
  cam_pos: Floats  # [ncam, 3] [m] in the body
  cam_quat: Floats  # [ncam, 4] [1] in the body
  cam_pos0: Floats  # [ncam, 3] [m] from the body, in world axes at qpos0
  cam_poscom0: Floats  # [ncam, 3] [m] from the centre of mass of the body's subtree, likewise
  cam_mat0: Floats  # [ncam, 9] [1] orientation in the world at qpos0
  cam_resolution: Ints  # [ncam, 2] pixels of a row, and of a column
  cam_focal: Floats  # [ncam, 2] focal lengths [pixels] along rows and columns

  sensor_type: Ints  # [nsensor]
  sensor_datatype: Ints  # [nsensor]
  sensor_objtype: Ints  # [nsensor]
  sensor_objid: Ints  # [nsensor]
  sensor_reftype: Ints  # [nsensor]
  sensor_refid: Ints  # [nsensor]
  sensor_intprm: Ints  # [nsensor, 3]
  sensor_dim: Ints  # [nsensor]
  sensor_adr: Ints  # [nsensor] first index in sensordata
  sensor_cutoff: Floats  # [nsensor] [varies] 0: none
  sensor_delay: Floats  # [nsensor] [s]
  sensor_interval: Floats  # [nsensor, 2] [s] between measurements, 0: every time step; phase
  sensor_history: Ints  # [nsensor, 2] number of samples, kind of interpolation
  sensor_supported: Bools  # [nsensor] where sensordata is computed; the others stay zero

  key_qpos: Floats  # [nkey, nq] [m or rad] and quaternions of the key frames
  key_ctrl: Floats  # [nkey, nu] [varies]
  key_plastic: Floats  # [nkey, nplastic] [m or rad] and quaternions where plastic springs rest

  body_names: tuple[str, ...]  # [nbody]
  joint_names: tuple[str, ...]  # [njnt]
  geom_names: tuple[str, ...]  # [ngeom]
  site_names: tuple[str, ...]  # [nsite]
  tendon_names: tuple[str, ...]  # [ntendon]
  actuator_names: tuple[str, ...]  # [nactuator]
  sensor_names: tuple[str, ...]  # [nsensor]
  key_names: tuple[str, ...]  # [nkey]

  actuation_enabled: bool
  passive_enabled: bool  # false where the file disables both springs and dampers
  eulerdamp: bool  # joint damping enters the velocity update implicitly
  contact_enabled: bool
  limit_enabled: bool
  frictionloss_enabled: bool
  warmstart_enabled: bool
  multiccd: bool  # convex shapes get a contact per corner where faces meet
  refsafe: bool  # time constants of constraints are at least two time steps

  varied: tuple[str, ...]  # fields that differ between environments
  pairs: tuple[ContactPair, ...]  # all geom pairs that can collide
  left_out: tuple[str, ...]  # elements and features of the file that the model lacks
  mj: Any  # mujoco.MjModel, the compiled model itself: for parity tests and for inspection

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
    """Return the slice of sensordata of the sensor called `name`; KeyError names the nearest."""
    sensor = _find(self.sensor_names, "sensor", name)
    start = int(self.sensor_adr[sensor])
    return slice(start, start + int(self.sensor_dim[sensor]))


def _find(names: tuple[str, ...], kind: str, name: str) -> int:
  if name in names:
    return names.index(name)
  raise KeyError(f"no {kind} {name!r}" + (f"; the nearest is {nearest_word(name, names)!r}" if names else ""))
