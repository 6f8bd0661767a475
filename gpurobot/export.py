"""Export a policy: python -m gpurobot.export checkpoint=<run folder or .pt file> [key=value ...].

It writes policy.onnx and policy.pt (TorchScript), the same function of raw observations, and policy.json,
which says how to use them; both carry that text too. First their actions are compared with the policy's.
"""

import dataclasses
import importlib
import sys
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from gpurobot import extras
from gpurobot.config import PPOConfig, Precision, option
from gpurobot.deploy import manifest
from gpurobot.deploy.deployed import Controls, Deployed
from gpurobot.deploy.exported import NAMES, Exported, write
from gpurobot.deploy.policy import Policy
from gpurobot.deploy.trained import PolicySettings, load, read, start
from gpurobot.learn.env import VecEnv
from gpurobot.run import checkpoint
from tasks.base import Task

ENVS, STEPS = 16, 64  # of the comparison
TOLERANCE = 1e-5  # of actions, which reach from -1 to 1


@dataclasses.dataclass
class Export(PolicySettings):
  """Settings of an export."""

  folder: str | None = option(None, "where the files go; default: export in the run folder")


def export(settings: Export) -> None:
  """Write the files and say what they are; raise ValueError, and write nothing, where they are not right."""
  with extras.require_extra("export"):
    for name in extras.EXTRAS["export"]:
      importlib.import_module(name)
  trained = load(settings, ENVS)
  env, config = trained.env, trained.config
  assert isinstance(env, VecEnv)
  _, saved = read(settings.checkpoint)
  policy = Policy(saved["learner"], _unrounded(config.ppo), ENVS, env.device)
  deployed = Deployed(policy, _find_controls(env) if isinstance(env, Task) else None)
  facts = manifest.describe(config, env, deployed) | {"example": _example(deployed, env)}
  folder = Path(settings.folder or checkpoint.find(str(settings.checkpoint)).parent / "export")
  folder.mkdir(parents=True, exist_ok=True)
  with tempfile.TemporaryDirectory(dir=folder) as scratch:
    write(deployed, facts, Path(scratch))
    errors = {name: _difference(env, policy, Exported(Path(scratch) / name, ENVS)) for name in NAMES[:2]}
    for name, error in errors.items():
      if not error <= TOLERANCE:  # nan too
        raise ValueError(
          f"{name}: its actions are {error:.2g} off, more than {TOLERANCE:g}: no file is written"
        )
    for path in Path(scratch).iterdir():
      path.replace(folder / path.name)
  for name, error in errors.items():
    print(f"{folder / name}: {', '.join(deployed.outputs)}; actions within {error:.2g} of the policy's")
  print("\n  ".join([f"{folder / NAMES[2]}: what is inside, and what is left to you:", *facts["yours"]]))
  if trained.policy.agent.precision is Precision.bf16:
    rounded = _difference(env, policy, trained.policy)
    print(f"trained in bf16, exported in float32: actions differ by up to {rounded:.2g}")


def _unrounded(ppo: PPOConfig) -> PPOConfig:
  """Return the settings of the same network in float32, or float64 where it was trained in that."""
  precision = Precision.float64 if ppo.precision is Precision.float64 else Precision.float32
  return dataclasses.replace(ppo, precision=precision)


def _find_controls(env: Task) -> Controls | None:
  """Return what makes controls of actions, found by random ones; None where it depends on more than them."""
  generator = torch.Generator().manual_seed(0)
  pairs = []
  env.reset()
  for _ in range(STEPS):
    action = 2 * torch.rand(ENVS, env.num_actions, generator=generator) - 1
    if env.choices:
      action = ((action + 1) / 2 * torch.tensor(env.choices)).long()
    step = env.step(action.to(env.device))
    goes_on = ~(step["terminated"] | step["truncated"]) & step["valid"]  # else the controls are reset
    pairs.append((action[goes_on.cpu()], env.sim.ctrl[goes_on].cpu()))
  actions, controls = (torch.cat(column) for column in zip(*pairs, strict=True))
  return Controls.fit(actions, controls)


@torch.no_grad()
def _example(deployed: Deployed, env: VecEnv) -> dict[str, Any]:
  """Return inputs and outputs of one step, for whoever runs the policy to try."""
  inputs = {name: torch.zeros(1, width) for name, width in deployed.inputs.items()}
  inputs["obs"] = env.reset()["policy"][:1].float().cpu()
  outputs = dict(zip(deployed.outputs, deployed(*inputs.values()), strict=True))
  return {name: value[0].tolist() for name, value in (inputs | outputs).items()}


@torch.no_grad()
def _difference(
  env: VecEnv, policy: Policy, other: Callable[[Mapping[str, Tensor], Tensor], Tensor]
) -> float:
  """Return how far another policy's actions are off where this one acts, at most; nan if one is no number.

  Of choices it is by how much their probability's logarithm is smaller [nat].
  """
  errors: list[Tensor] = []
  obs, ended = env.reset(), torch.ones(ENVS, dtype=torch.bool, device=env.device)
  for _ in range(STEPS):
    wanted, given = policy.distribution(obs, ended), other(obs, ended)
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
  """Export as the words say."""
  start(Export(), "python -m gpurobot.export", argv, export)


if __name__ == "__main__":
  main(sys.argv[1:])
