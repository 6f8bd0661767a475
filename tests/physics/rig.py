"""A small machine with every kind of joint, to hang actuators on, and its motion beside MuJoCo's."""

import mujoco
import numpy as np
import torch

from physics.load import load_model
from physics.model.model import Model
from physics.parity import MujocoSimulation, NumpySimulation
from tests.physics.oracle import smooth_of

MACHINE = """
<mujoco>
  <option timestep="0.001953125" integrator="{integrator}" {option}><flag contact="disable" {flag}/></option>
  <compiler angle="radian"/>
  <worldbody>
    <site name="fixed" pos="0.3 0.1 0.2" euler="0.2 0.3 0.4"/>
    <body name="base" gravcomp="0.5">
      <joint name="slide" type="slide" axis="0.6 0 0.8" {slide}/>
      <geom size="0.2"/>
      <site name="back" pos="0.1 0.2 0.05" euler="0.5 0.1 0.3"/>
      <body pos="0.2 0 0" gravcomp="0.7">
        <joint name="hinge" axis="0 1 0" {hinge}/>
        <geom type="capsule" fromto="0 0 0 0.3 0 0" size="0.1"/>
        <site name="left" pos="0.1 -0.2 0.05" euler="-0.5 0.6 0.3"/>
      </body>
      <body pos="-0.2 0 0">
        <joint name="ball" type="ball"/>
        <geom type="capsule" fromto="0 0 0 -0.3 0 0.1" size="0.1"/>
        <site name="right" pos="0.1 0.1 0.1" euler="1 0.6 0.3"/>
      </body>
    </body>
    <body name="satellite" pos="0 0 2">
      <freejoint name="free"/>
      <geom type="box" size="0.1 0.2 0.3"/>
      <site name="jet"/>
    </body>
  </worldbody>
  <tendon>
    <fixed name="cord" {cord}><joint joint="slide" coef="1.5"/><joint joint="hinge" coef="-0.5"/></fixed>
  </tendon>
  <actuator>{actuators}</actuator>
</mujoco>
"""


def machine(actuators: str, integrator: str = "Euler", **parts: str) -> Model:
  """Return the machine with actuators; `parts` are attributes of option, flag, slide, hinge and cord."""
  places = dict.fromkeys(("option", "flag", "slide", "hinge", "cord"), "")
  return load_model(MACHINE.format(actuators=actuators, integrator=integrator, **places | parts))


def moments(model: Model, count: int = 4, scale: float = 1.0) -> list[mujoco.MjData]:
  """Return MuJoCo's data at random moments, half of them a step after another: controls are up to `scale`."""
  random, data = np.random.default_rng(0), []
  for index in range(count):
    moment = mujoco.MjData(model.mj)
    moment.qpos[:] += 0.5 * random.normal(size=model.nq)
    mujoco.mj_normalizeQuat(model.mj, moment.qpos)
    moment.qvel[:], moment.act[:] = random.normal(size=model.nv), random.normal(size=model.na)
    moment.ctrl[:] = scale * random.normal(size=model.nu)
    if index % 2:
      mujoco.mj_step(model.mj, moment)
    mujoco.mj_forward(model.mj, moment)
    data.append(moment)
  return data


def assert_actuates_as_mujoco(model: Model, scale: float = 1.0) -> None:
  """Assert that all that actuators do at a moment is MuJoCo's."""
  for data in moments(model, scale=scale):
    actuated = smooth_of(model, data).actuated
    for name, found in (
      ("actuator_length", actuated.length),
      ("actuator_velocity", actuated.velocity),
      ("actuator_force", actuated.force),
      ("qfrc_actuator", actuated.qfrc),
      ("act_dot", actuated.act_dot),
    ):
      np.testing.assert_allclose(found, getattr(data, name), rtol=1e-12, atol=1e-12, err_msg=name)


def assert_moves_as_mujoco(model: Model, steps: int = 10, scale: float = 1.0) -> None:
  """Assert that the traced program's trajectory in float64 is MuJoCo's, controls random at every step."""
  generator = torch.Generator().manual_seed(0)
  engines = MujocoSimulation(model, 3), NumpySimulation(model, 3)
  qvel, act = (torch.randn(3, size, generator=generator) for size in (model.nv, model.na))
  for engine in engines:
    engine.qvel[:], engine.act[:] = qvel, act
  for step in range(steps):
    ctrl = scale * torch.randn(3, model.nu, generator=generator)
    for engine in engines:
      engine.ctrl[:] = ctrl
      engine.step()
    expected, found = engines
    for name in ("qpos", "qvel", "act"):
      torch.testing.assert_close(
        getattr(found, name), getattr(expected, name), rtol=1e-11, atol=1e-12, msg=f"{name} after step {step}"
      )
