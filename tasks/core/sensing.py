"""Sensors of a task: what a policy measures, rays and cameras."""

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any

from torch import Tensor

import physics
from tasks.core.camera import Defects, TaskCamera
from tasks.core.names import Names
from tasks.core.random_source import RandomSource
from tasks.core.sensor import Sensor, in_order


class Sensing(Names):
  """Methods of a task about what its robot senses: the policy's inputs, rays and cameras."""

  sim: physics.Simulation
  random: RandomSource
  training: bool
  cameras: list[TaskCamera]
  sensors: Mapping[str, Sensor] = MappingProxyType({})  # what `measure` returns, by name; `setup` sets it
  # Sensors that the policy lacks, and the setting that shows each of them, or ""; `setup` sets it.
  hidden: Mapping[str, str] = MappingProxyType({})
  action_names: Callable[[], Sequence[str]]

  @property
  def identity(self) -> dict[str, Any]:
    """Names of actions, joints and controls, and digests of the model: what a policy of the task rests on."""
    return {"action": list(self.action_names()), **physics.identity(self.model)}

  def measure(self) -> dict[str, Tensor]:
    """Return all that the policy's robot measures, is commanded or remembers [num_envs, n], by `sensors`."""
    return {}

  def policy_blocks(self, measured: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Return the policy's blocks [n, ...] for what n robots `measured` [n, ...]: a function of it alone."""
    return dict(measured)

  def seen(self, blocks: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Return the blocks that no setting takes from the policy."""
    return {name: block for name, block in blocks.items() if name not in self.hidden}

  def check_sensors(self) -> None:
    """Keep the policy's sensors, as `measure()` orders them; raise TaskError unless they have its columns."""
    sensors = in_order(self.sensors, self.measure())
    self.sensors = {name: sensor for name, sensor in sensors.items() if name not in self.hidden}

  def teacher_index(self, count: int) -> Tensor | None:  # noqa: ARG002 (a task may need it)
    """Return which of `count` teachers teaches each environment [num_envs] int64; None: equal shares."""
    return None

  def rays(
    self,
    body: str,
    origins: Sequence[Sequence[float]],
    directions: Sequence[Any],
    frame: physics.RayFrame = "body",
    geoms: Sequence[str] = (),
  ) -> physics.RayCaster:
    """Return a RayCaster for rays from a body at the named geoms, or at all visible ones if none is named."""
    chosen = [self.model.geom_id(name) for name in geoms] or None
    return physics.RayCaster(self.sim, body, origins, directions, frame, chosen)

  def camera(
    self,
    name: str,
    width: int,
    height: int,
    kinds: Sequence[str] = ("depth",),
    defects: Defects | None = None,
    depths: tuple[float, float] | None = None,
  ) -> TaskCamera:
    """Return a camera of the robot file, or one that a body carries, in every environment.

    `kinds` of images: "depth", "rgb", "segmentation", "normal". It looks after every control step,
    before `update`, at the start of an episode and again after an event; `render()` returns its images.
    Noise and latency of `defects` act as in a training. `depths` are the least and the greatest depth that
    is drawn [m]; None: the file's.
    """
    seen = physics.Camera(self.sim, name, width, height, kinds, depths)
    given = defects or Defects()
    real = given if self.training else Defects(given.rate)
    self.cameras.append(TaskCamera(seen, real, self.random.uniform))
    return self.cameras[-1]

  def look(self, episode_steps: Tensor) -> None:
    """Take all cameras' images that are due after a control step of an episode [num_envs]."""
    for camera in self.cameras:
      camera.look(episode_steps)

  def correct(self, changed: Tensor, episode_steps: Tensor) -> None:
    """Compute derived quantities and images of this control step again where `changed` [num_envs]."""
    self.sim.forward(changed)
    for camera in self.cameras:
      camera.restart(changed & (episode_steps % camera.defects.rate == 0), -1)

  def look_again(self, ended: Tensor) -> None:
    """Take all cameras' images of the first state of an episode where `ended` [num_envs]."""
    for camera in self.cameras:
      camera.restart(ended)
