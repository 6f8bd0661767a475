"""A robot's own file as a world to walk in: as it stands, with what training measures."""

import mujoco
import numpy as np
from mujoco import mjtGeom, mjtTrn

from physics.robot.description import Robot
from physics.robot.ground import make_uneven
from physics.robot.prepare import put_site
from physics.robot.source import compiled, is_level, open_robot


def read_own_file(robot: Robot, trained: mujoco.MjSpec) -> mujoco.MjModel:
  """Return a robot's own file, with the sensors of the training's model `trained` in the same order.

  It keeps its options, armature, contacts and actuators. It gets a floor if it has no shape that stands
  still, and the training's uneven ground in place of its floor. Each joint without an actuator gets a motor
  with the training's largest torque. Raises ValueError in one line if MuJoCo refuses it.
  """
  spec = open_robot(robot.path, [], floating=True)
  for one in list(spec.sensors):
    spec.delete(one)
  for sensor in trained.sensors:
    site = trained.site(sensor.objname)
    put_site(spec, site.name, site.parent.name, type=site.type, pos=site.pos, size=site.size)
  for sensor in trained.sensors:
    spec.add_sensor(name=sensor.name, type=sensor.type, objtype=sensor.objtype, objname=sensor.objname)
  if not spec.worldbody.geoms:
    spec.worldbody.add_geom(type=mjtGeom.mjGEOM_PLANE, size=[0, 0, 1])
  for field in trained.hfields:
    plane = next((geom for geom in spec.worldbody.geoms if is_level(geom)), None)
    if plane is None:
      raise ValueError(f"{robot.path}: it has no level floor to make uneven")
    make_uneven(spec, plane, np.reshape(field.userdata, (field.nrow, field.ncol)), field.size[:2])
  driven = {actuator.target for actuator in spec.actuators}
  for joint, effort in zip(robot.joints, robot.effort.tolist(), strict=True):
    if joint not in driven:
      motor = spec.add_actuator(name=joint, target=joint, trntype=mjtTrn.mjTRN_JOINT)
      motor.set_to_motor()
      motor.forcelimited, motor.forcerange = effort < mujoco.mjMAXVAL, [-effort, effort]
  return compiled(spec, robot.path)
