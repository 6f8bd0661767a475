"""MuJoCo C on a robot's own file, in place of the training's model."""

from collections.abc import Callable
from dataclasses import replace

import mujoco
import numpy as np
import torch
from mujoco import mjtBias, mjtDyn, mjtGain, mjtJoint

from physics.engines.mujoco_engine import SIGNATURE, MujocoSimulation
from physics.model.model import Floats, Ints, Model
from physics.ray.raycaster import Rays
from physics.state.layout import OutputSpec

ON_JOINT = (mujoco.mjtTrn.mjTRN_JOINT, mujoco.mjtTrn.mjTRN_JOINTINPARENT)
HELD = mujoco.mjtDisableBit.mjDSBL_AUTORESET  # what diverges is not finite, and counts


class OwnFileSimulation(MujocoSimulation):
  """The file's physics with state, controls and outputs of the training's model, by the names of its parts.

  A physics step of the training is as many of the file's as fit best. Position servos of the file follow the
  targets by their own gains; motors get the torque of the training's servos.
  """

  qpos: torch.Tensor
  qvel: torch.Tensor
  ctrl: torch.Tensor

  def __init__(self, model: Model, num_envs: int, outputs: OutputSpec, own: mujoco.MjModel) -> None:
    """Look up the parts; raise ValueError if a joint of the robot has no motor or servo alone."""
    trained, self._file = model.mj, mujoco.MjData(own)
    own.opt.disableflags |= HELD
    self._qpos, self._qvel = _columns(trained, own)
    self._bodies = [own.body(trained.body(body).name).id for body in range(trained.nbody)]
    self._sites = [own.site(trained.site(site).name).id for site in range(trained.nsite)]
    self._drives = _Drives(trained, own)
    super().__init__(model, num_envs, outputs)
    self._mj, self._data = own, self._file
    self._apart = np.empty(mujoco.mj_stateSize(own, SIGNATURE))
    mujoco.mj_getState(own, self._data, self._apart, SIGNATURE)
    self._all = np.tile(self._apart, (num_envs, 1))  # whole states of the file's world

  def step(self, substeps: int = 1, ctrl: torch.Tensor | None = None) -> None:
    """Advance by `substeps` time steps of the training; `ctrl` [num_envs, substeps, nu]: targets of each."""
    count = max(1, round(substeps * self.model.timestep / self._mj.opt.timestep))
    self._mj.opt.timestep = substeps * self.model.timestep / count
    for env in range(self.num_envs):
      self._load(env)
      for step in range(count):
        targets = self.ctrl[env] if ctrl is None else ctrl[env, step * substeps // count]
        self._drives(self._data, targets.numpy())
        mujoco.mj_step(self._mj, self._data)
        self._store(env, step)
      mujoco.mj_getState(self._mj, self._data, self._all[env], SIGNATURE)
      self.qpos[env] = torch.from_numpy(self._data.qpos[self._qpos])
      self.qvel[env] = torch.from_numpy(self._data.qvel[self._qvel])

  def reset(self, mask: torch.Tensor | None = None) -> None:
    """Set the defaults of the training's model, and of the file for all else."""
    super().reset(mask)
    self._all[self._selected(mask)] = self._apart

  def attach_rays(self, rays: Rays) -> tuple[Callable[[], None], torch.Tensor]:
    """Return a function that casts rays from and at the parts of these names in the file."""
    names = [self.model.geom_names[geom] for geom in rays.geoms]
    own = replace(rays, body=self._bodies[rays.body], geoms=[self._mj.geom(name).id for name in names])
    return super().attach_rays(own)

  def _load(self, env: int) -> None:
    mujoco.mj_setState(self._mj, self._data, self._all[env], SIGNATURE)
    self._data.qpos[self._qpos], self._data.qvel[self._qvel] = self.qpos[env].numpy(), self.qvel[env].numpy()

  def _read(self, name: str) -> Floats:
    if name == "actuator_force":  # of the training's servos, one for each joint
      return np.asarray(self._file.qfrc_actuator[self._drives.dofs])
    rows = {"cfrc_ext": self._bodies, "site_xpos": self._sites}.get(name, slice(None))
    return np.asarray(getattr(self._file, name)[rows])


class _Drives:
  """The file's motors and servos, driven to the targets of the training's servos."""

  def __init__(self, trained: mujoco.MjModel, own: mujoco.MjModel) -> None:
    """Find the actuator of each joint; raise ValueError where there are others."""
    names = [trained.joint(joint).name for joint in trained.actuator_trnid[:, 0]]
    joints = [own.joint(name).id for name in names]
    self.dofs, self._angles = own.jnt_dofadr[joints], own.jnt_qposadr[joints]
    own_joints = own.actuator_trnid[:, 0].tolist()
    if sorted(own_joints) != sorted(joints) or not np.isin(own.actuator_trntype, ON_JOINT).all():
      raise ValueError("the file does not drive each joint of the policy, and no other, by one actuator")
    self._order = [own_joints.index(joint) for joint in joints]
    gain, bias = own.actuator_gainprm[self._order, 0], own.actuator_biasprm[self._order, 1]
    simple = (own.actuator_gaintype == mjtGain.mjGAIN_FIXED) & (own.actuator_dyntype == mjtDyn.mjDYN_NONE)
    motor = own.actuator_biastype[self._order] == mjtBias.mjBIAS_NONE
    wheel = trained.actuator_biasprm[:, 1] == 0
    servo = np.where(wheel, (bias == 0) & (gain == -own.actuator_biasprm[self._order, 2]), gain == -bias)
    if not (simple[self._order] & (gain > 0) & (motor | servo)).all():
      raise ValueError(
        "the file has actuators that are neither motors nor position servos, or of wheels velocity servos"
      )
    self._gear, self._motor, self._gain = own.actuator_gear[self._order, 0], motor, gain
    self._trained, (_, self._kp, self._kd) = trained.actuator_gainprm[:, 0], -trained.actuator_biasprm.T[:3]
    limited = trained.actuator_forcelimited[:, None].astype(bool)
    self._limit = np.where(limited, trained.actuator_forcerange, [-np.inf, np.inf]).T

  def __call__(self, data: mujoco.MjData, targets: Floats) -> None:
    """Set the controls for targets [nu] of the training's servos [rad, m]."""
    torque = self._trained * targets - self._kp * data.qpos[self._angles] - self._kd * data.qvel[self.dofs]
    torque = np.clip(torque, *self._limit)
    data.ctrl[self._order] = np.where(self._motor, torque / (self._gain * self._gear), targets * self._gear)


def _columns(trained: mujoco.MjModel, own: mujoco.MjModel) -> tuple[Ints, Ints]:
  """Return the places of the training's qpos and qvel in the file's; raise ValueError where it has more."""
  qpos, qvel = list[int](), list[int]()
  for joint in range(trained.njnt):
    index = own.joint(trained.joint(joint).name).id
    free = trained.jnt_type[joint] == mjtJoint.mjJNT_FREE
    qpos += range(own.jnt_qposadr[index], own.jnt_qposadr[index] + (7 if free else 1))
    qvel += range(own.jnt_dofadr[index], own.jnt_dofadr[index] + (6 if free else 1))
  root = own.body_rootid[own.dof_bodyid[qvel[0]]]
  held = set(np.flatnonzero(own.body_rootid[own.dof_bodyid] == root).tolist()) - {*qvel}
  if held:
    raise ValueError("env.joints holds joints that move in the robot's own file")
  return np.array(qpos), np.array(qvel)
