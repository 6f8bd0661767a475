"""A task for tests of what shows robots: a red box with a leg on a height field, beside a mocap target."""

from dataclasses import dataclass

from tasks import base

TRAIN = {"num_envs": 4}
PPO = {"hidden": [8], "horizon": 4, "minibatches": 1, "precision": "float32"}


@dataclass
class Config(base.Config):
  """Settings of the box."""

  episode_steps: int = base.option(50, "control steps until the time limit", low=1)
  reward_height: float = base.option(2.0, "weight of the height")
  reward_effort: float = base.option(-0.1, "weight of the squared action")


class Task(base.Task):
  """It sees its height and its command."""

  robot = """
    <mujoco>
      <asset><hfield name="hills" nrow="3" ncol="3" size="4 4 1 0.1" elevation="0 0 0  0 0 0  0 1 1"/></asset>
      <worldbody>
        <light directional="true" pos="0 0 3" dir="0 0 -1"/>
        <camera name="above" pos="0 0 4"/>
        <geom name="hills" type="hfield" hfield="hills"/>
        <body name="target" mocap="true" pos="1 0 1">
          <geom type="sphere" size="0.2" rgba="0 1 0 1" contype="0" conaffinity="0"/>
        </body>
        <body name="cube" pos="0 1 0.5"><freejoint/><geom type="box" size="0.1 0.1 0.1"/></body>
        <body name="box" pos="0 0 1">
          <freejoint/><geom type="box" size="0.4 0.4 0.2" rgba="1 0 0 1"/>
          <body pos="0 0 -0.2">
            <joint name="leg" type="slide" axis="0 0 1" range="-0.2 0.2"/>
            <geom size="0.1" mass="1" rgba="1 0 0 1"/>
          </body>
        </body>
      </worldbody>
      <actuator><motor joint="leg" ctrlrange="-50 50"/></actuator>
    </mujoco>"""
  config: Config

  def setup(self):
    self.command = self.buffer(3)
    ranges = {"forward": (-1.0, 1.0, "m/s"), "sideways": (-0.5, 0.5, "m/s"), "turn": (0.0, 0.0, "rad/s")}
    self.commands = base.Commands(self.command, ranges, shows="velocity")

  def initial_state(self):
    target = self.constant(self.model.mocap_pos0) + self.random.uniform("target", (1, 3), 0.0, 0.5)
    return {"mocap_pos": target}

  def reward(self):
    return {"height": self.sim.qpos[:, 9], "effort": self.action[:, 0].square()}

  def observe(self):
    return {"policy": {"height": self.sim.qpos[:, 9], "command": self.command}}
