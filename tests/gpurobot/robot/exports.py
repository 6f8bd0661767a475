"""Exports of untrained policies, and a robot in this process that stands still."""

import dataclasses
import json
from pathlib import Path

import numpy as np
import torch

import tasks
from gpurobot.deploy.deployed import Controls, Deployed
from gpurobot.deploy.exported import KEY, _quiet, write
from gpurobot.deploy.header import write_header
from gpurobot.deploy.manifest import describe
from gpurobot.learn.random import Random
from gpurobot.robot.interface import State
from gpurobot.settings.config import defaults
from physics.parity import MujocoSimulation
from physics.save import save_model
from tests.gpurobot.policies import make


def environment(name, **settings):
  """Return an environment of a task in MuJoCo C, and its configuration."""
  module = tasks.load(name)
  config = defaults(module)
  config = dataclasses.replace(config, task=name, env=dataclasses.replace(config.env, **settings))
  simulation = MujocoSimulation(module.Task.make_model(config.env), 1, module.Task.outputs)
  return module.Task(config.env, 1, random=Random(0, 1), training=False, simulation=simulation), config


def write_export(folder: Path, name: str, weights=0.0, header=False, **settings):
  """Write the export of a policy with random weights times `weights`; return its environment."""
  env, config = environment(name, **settings)
  width = sum(block.shape[1] for block in env.observe()["policy"].values())
  dims = {"policy": width * env.observations.lengths["policy"], "critic": 3}
  policy = make(dims, env.num_actions)
  for parameter in policy.agent.network.parameters():
    parameter.data *= weights
  controls = Controls(env.stance.float(), torch.diag(env.angle_scale).float())
  deployed = Deployed(policy, controls, env.action_filter())
  facts = describe(config, env, deployed)
  write(deployed, facts, folder)
  if header:
    write_header(deployed, facts, folder)
  save_model(env.scene(config.env), folder / "robot.xml")
  return env


def change(source: Path, folder: Path, edit):
  """Write policy.pt and policy.json of an export into a folder, with a manifest that `edit` changes."""
  facts = json.loads((source / "policy.json").read_text())
  edit(facts)
  (folder / "policy.json").write_text(json.dumps(facts))
  with _quiet():
    module = torch.jit.load(source / "policy.pt")
    torch.jit.save(module, folder / "policy.pt", _extra_files={KEY: json.dumps(facts)})


class Still:
  """Robot that reports one state for ever; its clock is what the controller waits for."""

  def __init__(self, joints, angles, fault=lambda state: state):
    self.joints, self.angles, self.fault = joints, angles, fault
    self.time, self.commands, self.slow = 0.0, [], lambda _: 0.0

  def read(self):
    n = len(self.joints)
    zeros, upright = np.zeros(n), np.array([1.0, 0.0, 0.0, 0.0])
    return self.fault(State(self.time + 100, self.time, self.angles, zeros, zeros, upright, np.zeros(3)))

  def write(self, command):
    self.commands.append(command)

  def now(self):
    return self.time

  def wait(self, until):
    self.time = max(self.time, until) + self.slow(until)

  def close(self):
    return ""
