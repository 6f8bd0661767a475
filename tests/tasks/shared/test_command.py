"""Velocity commands: within bounds, to both sides, a share of them to stand."""

import torch

from gpurobot.learn.random import Random
from tasks import cartpole
from tasks.shared.command import VelocityCommands


def commands_of(standing, num_envs=4096):
  task = cartpole.Task(cartpole.Config(), num_envs, random=Random(0, num_envs))
  return VelocityCommands(task, torch.zeros(num_envs, 3), (1.0, 0.5, 2.0), standing)


def drawn(standing):
  return commands_of(standing).draw()


def test_commands_say_what_they_are():
  commands = commands_of(standing=0.0, num_envs=1)
  assert commands.ranges == {
    "forward": (-1.0, 1.0, "m/s"), "sideways": (-0.5, 0.5, "m/s"), "turn": (-2.0, 2.0, "rad/s")
  }  # fmt: skip
  assert commands.shows == "velocity"


def test_commands_fill_their_ranges():
  commands = drawn(standing=0.0)
  torch.testing.assert_close(commands.amax(0), torch.tensor([1.0, 0.5, 2.0]), rtol=0.01, atol=0)
  torch.testing.assert_close(commands.amin(0), -torch.tensor([1.0, 0.5, 2.0]), rtol=0.01, atol=0)
  assert commands.mean(0).abs().max() < 0.05


def test_a_share_of_the_commands_is_to_stand():
  commands = drawn(standing=0.2)
  stands = commands.eq(0).all(1)
  assert 0.18 < stands.float().mean() < 0.22
  assert commands[~stands].ne(0).all()
