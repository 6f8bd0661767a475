"""A task for tests of recorded steps: a box pushed over the ground, of another mass in each episode.

How stiff its contacts are follows from its mass, by numbers that the engine derives from varied fields.
"""

from dataclasses import dataclass

from tasks import base
from tasks.shared import randomize

TRAIN = {"num_envs": 32}
PPO: dict[str, object] = {}


@dataclass
class Config(base.Config):
  """Settings of the box."""

  episode_steps: int = base.option(3, "control steps until the time limit", low=1)
  reward_speed: float = base.option(1.0, "weight of the speed")
  reward_lift: float = base.option(0.1, "weight of the upward acceleration")


class Task(base.Task):
  """It sees where it is and how fast it moves."""

  robot = """
    <mujoco>
      <worldbody>
        <geom type="plane" size="9 9 1"/>
        <body name="box" pos="0 0 0.1">
          <freejoint name="box"/><geom type="box" size="0.2 0.2 0.1" mass="3"/>
        </body>
      </worldbody>
      <actuator><motor joint="box" gear="30 0 0 0 0 0" ctrlrange="-1 1"/></actuator>
    </mujoco>"""
  vary = ("body_mass", "body_inertia")
  config: Config

  def setup(self):
    mass = randomize.mass(0.3, 3.0, self.model.body_id("box"))
    self.boxes = randomize.Randomization(self, {"box": mass})

  def initial_state(self):
    return self.boxes.draw()

  def reward(self):
    return {"speed": self.sim.qvel[:, 0], "lift": self.sim.qacc[:, 2]}

  def observe(self):
    return {"policy": {"position": self.sim.qpos[:, :3], "velocity": self.sim.qvel}}
