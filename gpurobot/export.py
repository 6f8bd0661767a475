"""Export of a policy: python -m gpurobot.export checkpoint=<run folder or .pt file> [key=value ...].

It writes policy.onnx and policy.pt (TorchScript), the same function of raw observations, controller.onnx and
controller.pt, the same of the numbers of sensors, and policy.json, their manifest, which all embed. Their
actions are compared with the policy's first. A task may write files of its own beside them, such as the
tracked motions. policy.hpp is the same function in C++, robot.xml the model of the training.
"""

import dataclasses
import importlib
import shutil
import sys
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from gpurobot import extras
from gpurobot.deploy import latency, manifest
from gpurobot.deploy.deployed import Controls, Deployed
from gpurobot.deploy.exported import CONTROLLER, FOLDER, NAMES, Exported, write, write_controller
from gpurobot.deploy.from_sensors import FromSensors
from gpurobot.deploy.header import HEADER, UnsupportedError, write_header
from gpurobot.deploy.policy import Policy
from gpurobot.deploy.trained import PolicySettings, load, read_policy, start
from gpurobot.learn.env import VecEnv
from gpurobot.run import checkpoint
from gpurobot.run.folder import make_folder
from gpurobot.settings.algorithms import AlgorithmConfig, Precision
from gpurobot.settings.config import algorithm_settings, option
from physics.save import save_model
from tasks.base import Task
from tasks.shared.action_path import ActionFilter

ENVS, STEPS = 16, 64  # size of the comparison
TOLERANCE = 1e-5  # largest difference of actions in [-1, 1]
ROBOT = "robot.xml"
OPTIONAL = {HEADER: "the policy in C++17", ROBOT: "the model of the training"}


@dataclasses.dataclass
class Export(PolicySettings):
  """Export of a policy."""

  folder: str | None = option(
    None, "folder of the exported files; null: export/ in the run folder, or of a demo here"
  )
  latency: bool = option(
    False, "find the longest env.action_delay with which success, or else the return, falls by less than 5 %"
  )


def export(settings: Export) -> None:
  """Write the files and describe them; raise ValueError, and write nothing, if their actions are wrong."""
  with extras.require_extra("export"):
    for name in extras.EXTRAS["export"]:
      importlib.import_module(name)
  trained = load(settings, ENVS)
  env, config = trained.env, trained.config
  assert isinstance(env, VecEnv)
  saved = read_policy(settings.checkpoint)
  policy = Policy(saved["learner"], _unrounded(algorithm_settings(config)), ENVS, env.device)
  deployed = Deployed(policy, *_way_to_motors(env))
  facts = manifest.describe(config, env, deployed) | {"example": _example(deployed, env)}
  facts |= {"tolerated latency [s]": latency.tolerated(settings, print)} if settings.latency else {}
  run = Path() if settings.demo else checkpoint.find(str(settings.checkpoint)).parent
  folder = Path(settings.folder or run / FOLDER)
  make_folder("folder", folder)
  with tempfile.TemporaryDirectory(dir=folder) as scratch:
    facts["files"] = env.write_files(Path(scratch)) if hasattr(env, "write_files") else []
    write(deployed, facts, Path(scratch))
    missing = {
      HEADER: _write_header(deployed, facts, Path(scratch)),
      ROBOT: _write_robot(env, Path(scratch)),
    }
    names: tuple[str, ...] = NAMES[:2]
    if "controller" in facts:
      write_controller(FromSensors(deployed, facts), facts, Path(scratch))
      names += CONTROLLER
    errors = {name: _difference(env, policy, Exported(Path(scratch) / name, ENVS)) for name in names}
    _check(errors)
    _replace(Path(scratch), folder)
  for name, error in errors.items():
    outputs = ", ".join(deployed.outputs)
    print(f"{folder / name}: outputs {outputs}; actions differ by at most {error:.2g} from the policy's")
  for name, meaning in OPTIONAL.items():
    print(f"{folder / name}: " + (f"not written: {missing[name]}" if missing[name] else meaning))
  print("\n  ".join([f"{folder / NAMES[2]}: the manifest. Your program has to provide:", *facts["yours"]]))
  for name in facts["files"]:
    print(f"{folder / name}: goes with the policy")
  if trained.policy.agent.network.precision is Precision.bf16:
    rounded = _difference(env, policy, trained.policy)
    print(f"the policy was trained in bf16 and exported in float32: actions differ by at most {rounded:.2g}")


def _check(errors: Mapping[str, float]) -> None:
  """Raise ValueError if the largest error of a file's actions is more than rounding."""
  for name, error in errors.items():
    if not error <= TOLERANCE:  # nan too
      raise ValueError(
        f"{name}: its actions differ by {error:.2g} from the policy's, more than {TOLERANCE:g}; nothing is "
        "written"
      )


def _write_header(deployed: Deployed, facts: Mapping[str, Any], folder: Path) -> str:
  """Write the C++ header; return why it cannot express the policy, or ""."""
  try:
    write_header(deployed, facts, folder)
  except UnsupportedError as error:
    return f"C++ cannot express {error}; use {NAMES[0]} or {NAMES[1]}"
  return ""


def _write_robot(env: VecEnv, folder: Path) -> str:
  """Write the model of the training as MJCF, with its meshes; return why there is none, or ""."""
  if not isinstance(env, Task):
    return "the environment has no model"
  try:
    save_model(env.scene(env.config), folder / ROBOT)
  except (OSError, ValueError) as error:
    return " ".join(str(error).split())
  return ""


def _replace(source: Path, folder: Path) -> None:
  """Move files and folders from `source` to `folder`; other files of an earlier export go."""
  for name in (*CONTROLLER, *OPTIONAL):
    (folder / name).unlink(missing_ok=True)
  for path in source.iterdir():
    if path.is_dir():
      shutil.rmtree(folder / path.name, ignore_errors=True)
    path.replace(folder / path.name)


def _unrounded(settings: AlgorithmConfig) -> AlgorithmConfig:
  """Return the settings of the same network in float32, or in float64 if it was trained in float64."""
  precision = Precision.float64 if settings.precision is Precision.float64 else Precision.float32
  return dataclasses.replace(settings, precision=precision)


def _way_to_motors(env: VecEnv) -> tuple[Controls | None, ActionFilter | None]:
  """Return the map from actions to controls and the filter before it, as far as there are any."""
  controls = _find_controls(env) if isinstance(env, Task) else None
  return controls, env.action_filter() if hasattr(env, "action_filter") else None


def _find_controls(env: Task) -> Controls | None:
  """Fit the map from actions, as they reach the motors, to controls on random actions; None without one."""
  generator = torch.Generator().manual_seed(0)
  pairs = []
  env.reset()
  for _ in range(STEPS):
    action = 2 * torch.rand(ENVS, env.num_actions, generator=generator) - 1
    if env.choices:
      action = ((action + 1) / 2 * torch.tensor(env.choices)).long()
    step = env.step(action.to(env.device))
    running = ~(step["terminated"] | step["truncated"]) & step["valid"]  # elsewhere controls were reset
    if hasattr(env, "arrived"):
      action = env.arrived()[:, -1].cpu()
    pairs.append((action[running.cpu()], env.sim.ctrl[running].cpu()))
  actions, controls = (torch.cat(column) for column in zip(*pairs, strict=True))
  return Controls.fit(actions, controls)


@torch.no_grad()
def _example(deployed: Deployed, env: VecEnv) -> dict[str, Any]:
  """Return the inputs and outputs of one step, a test case for the program that runs the policy."""
  inputs, obs = deployed.inputs, env.reset()
  for name, zeros in inputs.items():
    if name != "state":
      zeros.copy_(obs["policy" if name == "obs" else name][:1])
  outputs = dict(zip(deployed.outputs, deployed(*inputs.values()), strict=True))
  return {name: value[0].tolist() for name, value in (inputs | outputs).items()}


@torch.no_grad()
def _difference(
  env: VecEnv, policy: Policy, other: Callable[[Mapping[str, Tensor], Tensor], Tensor]
) -> float:
  """Return the largest difference of another policy's actions along this one's rollout; nan if any is nan.

  For discrete actions it is the difference of their log probabilities [nat].
  """
  errors: list[Tensor] = []
  obs, ended = env.reset(), torch.ones(ENVS, dtype=torch.bool, device=env.device)
  for _ in range(STEPS):
    sensed = env.measure() if isinstance(env, Task) and env.sensors else {}
    wanted, given = policy.distribution(obs, ended), other({**sensed, **obs.to_dict()}, ended)
    best = wanted.mode()
    action = wanted.action(best).squeeze(0)
    if env.choices:
      errors.append((wanted.log_prob(best) - wanted.log_prob(given.unsqueeze(0))).max())
    else:
      errors.append((action.clamp(-1.0, 1.0) - given.clamp(-1.0, 1.0)).abs().max())
    step = env.step(action)
    obs, ended = step["obs"], step["terminated"] | step["truncated"] | ~step["valid"]
  return float(torch.stack(errors).max())


def main(argv: list[str]) -> None:
  """Export a policy with the settings in `argv`."""
  start(Export(), "python -m gpurobot.export", argv, export)


if __name__ == "__main__":
  main(sys.argv[1:])
