"""A task for the tests of what all tasks share: a block that slides without friction or weight."""

import dataclasses

import torch

from gpurobot.learn.random import Random
from tasks import base

ROBOT = """
<mujoco>
  <option timestep="0.01" integrator="Euler" gravity="0 0 0"/>
  <worldbody>
    <body name="ball">
      <joint name="ball" type="ball"/>
      <geom type="sphere" size="0.1" mass="1"/>
    </body>
    <body name="block">
      <joint name="x" type="slide" axis="1 0 0"/>
      <joint name="y" type="slide" axis="0 1 0"/>
      <joint name="z" type="slide" axis="0 0 1"/>
      <geom type="sphere" size="0.1" mass="1" contype="0" conaffinity="0"/>
    </body>
  </worldbody>
  <actuator>
    <motor name="push" joint="x" ctrllimited="true" ctrlrange="-2 4"/>
    <motor name="lift" joint="z" ctrllimited="true" ctrlrange="0 1"/>
  </actuator>
</mujoco>
"""


@dataclasses.dataclass
class Config(base.Config):
  episode_steps: int = 5
  substeps: int = 2
  reward_speed: float = 2.0
  reward_effort: float = -0.5


class Sliding(base.Task):
  """A block on three slides; it starts at x = 10 and ends where its y exceeds 1."""

  robot = ROBOT

  def setup(self):
    self.x, self.y = self.qpos_of("x").start, self.qpos_of("y").start
    self.travelled = self.buffer()
    self.best = self.buffer(2)
    self.calls = []

  def initial_state(self):
    self.calls.append("initial_state")
    self.final_x = self.sim.qpos[:, self.x].clone()
    qpos = self.constant(self.model.qpos0).repeat(self.num_envs, 1)
    qpos[:, self.x] = 10.0
    return {"qpos": qpos, "best": torch.ones(self.num_envs, 2)}

  def control(self):
    self.calls.append("control")
    super().control()

  def update(self):
    self.calls.append("update")
    self.travelled += 1.0

  def reward(self):
    self.calls.append("reward")
    return {"speed": self.sim.qvel[:, self.qvel_of("x").start], "effort": self.action.square().sum(1)}

  def terminated(self):
    self.calls.append("terminated")
    return self.sim.qpos[:, self.y] > 1.0

  def observe(self):
    self.calls.append("observe")
    x = self.sim.qpos[:, self.x]
    return {"policy": {"x": x, "travelled": self.travelled}, "critic": {"best": self.best, "x": x}}

  def metrics(self):
    return {"x": self.sim.qpos[:, self.x]}


def sliding(num_envs=4, *, training=False, kind=Sliding, config=None):
  task = kind(config or Config(), num_envs, random=Random(0, num_envs), training=training)
  task.reset()
  task.calls.clear()
  return task
