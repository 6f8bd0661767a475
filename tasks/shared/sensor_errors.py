"""Errors of an IMU and of joint encoders in training: bias, drift, resolution, latency, lost packets.

Magnitudes of small robots: a MEMS gyro (Bosch BMI088) has a bias of up to 0.017 rad/s, encoders are zeroed by
hand to 0.01 to 0.02 rad, and a bus delivers readings 1 to 10 ms late.
"""

import math
from collections.abc import Collection, Mapping
from dataclasses import dataclass

import torch
from torch import Tensor

from tasks import base
from tasks.base import option

GROUPS = ({"angular_velocity", "gravity", "attitude"}, {"angles", "speeds"})  # of the IMU, of the encoders
MOST_LOST = 4  # packets lost in a row


@dataclass
class Config(base.Config):
  """Settings of sensors; all act in training only."""

  gyro_bias: float = option(0.0, "largest bias of the gyro in an episode, along each axis", "rad/s", low=0)
  gyro_drift: float = option(0.0, "random walk of the gyro's bias in a second", "rad/s", low=0)
  tilt_bias: float = option(0.0, "largest error of the IMU's roll and pitch in an episode", "rad", low=0)
  encoder_bias: float = option(0.0, "largest error of a joint's zero, also of its servo's", "rad", low=0)
  encoder_step: float = option(0.0, "resolution of the joint angles", "rad", low=0)
  imu_latency: float = option(0.0, "age of the IMU's readings", "s", low=0)
  encoder_latency: float = option(0.0, "age of the encoders' readings", "s", low=0)
  latency_jitter: float = option(0.0, "largest change of both ages, drawn in each step", "s", low=0)
  packet_loss: float = option(0.0, "share of the steps without a new reading", low=0, high=1)


SETTINGS = tuple(vars(Config)["__annotations__"])


class Task(base.Task):
  """Task of a robot with an IMU and joint encoders; its `sensors` include `sensors.legged`."""

  config: Config

  def make_errors(self, applied: Collection[str] = (), **further: int) -> None:
    """Create buffers, once `sensors` is set; `applied` settings are the task's own, `further` widths too."""
    config = self.config
    given = {name: getattr(config, name) * (name not in applied) for name in SETTINGS}
    self.has_errors = self.training and any(given.values())
    if not self.has_errors:
      return
    widths = {name: len(sensor.columns) for name, sensor in self.sensors.items()} | further
    self.read_widths = {name: widths[name] for group in GROUPS for name in widths if name in group}
    width = sum(self.read_widths.values())
    # Errors of roll and pitch are small: gravity stays a unit vector nearly.
    spread = {"angular_velocity": config.gyro_bias, "angles": given["encoder_bias"]}
    self.bias_spread = self._readings({**spread, "gravity": (config.tilt_bias, config.tilt_bias, 0.0)})
    self.bias_drift = self._readings({"angular_velocity": config.gyro_drift * math.sqrt(self.dt)})
    self.reading_group = self._readings(dict.fromkeys(GROUPS[1], 1.0)).long()  # 0: the IMU's
    ages = config.imu_latency, config.encoder_latency
    self.reading_age = self.constant(ages) / self.dt  # [steps]
    lost = MOST_LOST if config.packet_loss else 0
    steps = math.ceil((max(ages) + config.latency_jitter) / self.dt) + lost
    self.bias = self.buffer(width)
    self.past_readings = self.buffer(steps, width)  # without errors, the latest first
    self.known_readings = self.buffer(dtype=torch.int64)  # number of them in this episode
    self.missed = self.buffer(len(GROUPS))  # packets lost in a row

  def _readings(self, values: Mapping[str, float | tuple[float, ...]]) -> Tensor:
    """Return a number for each column of the readings [width]."""
    numbers = (self.constant(values.get(name, 0.0)).expand(n) for name, n in self.read_widths.items())
    return torch.cat([*numbers])

  def start_errors(self) -> dict[str, Tensor]:
    """Return the bias of an episode, for `initial_state`."""
    if not self.has_errors:
      return {}
    return {"bias": self.bias_spread * self.random.uniform("bias", (len(self.bias_spread),), -1.0, 1.0)}

  def remember_readings(self) -> None:
    """Keep the present readings for later steps, before the simulation takes one; `control` calls it."""
    if self.has_errors and self.past_readings.shape[1]:
      now = self.joined(self.measure()).unsqueeze(1)
      self.past_readings.copy_(torch.cat([now, self.past_readings[:, :-1]], 1))
      self.known_readings.add_(1).clamp_(max=self.past_readings.shape[1])

  def advance_errors(self) -> None:
    """Let the bias of the gyro drift, and lose packets; `update` calls it."""
    if not self.has_errors:
      return
    if self.config.gyro_drift:
      self.bias += self.bias_drift * self.random.normal("gyro drift", (len(self.bias_drift),))
    if self.config.packet_loss:
      missing = self.random.uniform("packet loss", (len(GROUPS),)) < self.config.packet_loss
      self.missed.copy_((self.missed + 1).clamp(max=MOST_LOST) * missing)

  def read(self, measured: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Return `measured` [num_envs, n] with the errors of this step, if it `has_errors`.

    Other sensors are unchanged.
    """
    readings = self.apart(self._late(self.joined(measured)) + self.bias)
    if step := self.config.encoder_step:
      readings["angles"] = (readings["angles"] / step).round() * step
    return {**measured, **readings}

  def _late(self, now: Tensor) -> Tensor:
    """Return the readings [num_envs, width] that have arrived, interpolated between the steps."""
    if not self.past_readings.shape[1]:
      return now
    jitter = self.config.latency_jitter / self.dt * self.random.uniform("jitter", (len(GROUPS),), -1.0, 1.0)
    age = (self.reading_age + self.missed + jitter).clamp(min=0).minimum(self.known_readings.unsqueeze(1))
    age, all_readings = age[:, self.reading_group], torch.cat([now.unsqueeze(1), self.past_readings], 1)
    later, earlier = (
      all_readings.gather(1, index.long().unsqueeze(1)).squeeze(1) for index in (age.floor(), age.ceil())
    )
    return torch.lerp(later, earlier, age.frac())

  def joined(self, measured: Mapping[str, Tensor]) -> Tensor:
    """Return what is `measured` of the readings [num_envs, width]."""
    return torch.cat([measured[name] for name in self.read_widths], 1).float()

  def apart(self, readings: Tensor) -> dict[str, Tensor]:
    """Return readings, or their bias, [num_envs, width] by name."""
    return dict(zip(self.read_widths, readings.split([*self.read_widths.values()], 1), strict=True))

  def groups(self, hidden: Mapping[str, Tensor]) -> dict[str, dict[str, Tensor]]:
    """Return what the policy reads, and for the critic the same without errors and what is `hidden`."""
    blocks = self.policy_blocks(measured := self.measure())
    read = self.policy_blocks(self.read(measured)) if self.has_errors else blocks
    return {"policy": self.seen(read), "critic": {**blocks, **hidden}}
