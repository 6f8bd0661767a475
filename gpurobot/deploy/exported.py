"""Exported policy files, ONNX and TorchScript: writer and reader."""

import importlib
import json
import logging
import re
import shlex
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from gpurobot.deploy.deployed import Deployed
from gpurobot.deploy.from_sensors import FromSensors
from gpurobot.run import checkpoint
from gpurobot.settings.config import ConfigError

NAMES = ("policy.onnx", "policy.pt", "policy.json")  # ONNX, TorchScript, and the manifest that both embed
CONTROLLER = ("controller.onnx", "controller.pt")  # the same function of the numbers of the sensors
FOLDER = "export"  # of the files, in the folder of a run
KEY = "gpurobot"  # key of the embedded manifest


def write(deployed: Deployed, facts: Mapping[str, Any], folder: Path) -> None:
  """Write a policy and its manifest `facts` as the files NAMES in a folder."""
  text = json.dumps(facts, indent=2, allow_nan=False)
  text = re.sub(r"\[[^\[\]{}\"]*\]", lambda numbers: " ".join(numbers.group().split()), text)  # on one line
  onnx, torchscript, manifest = (folder / name for name in NAMES)
  _write(deployed, text, onnx, torchscript)
  manifest.write_text(text + "\n")


def write_controller(controller: FromSensors, facts: Mapping[str, Any], folder: Path) -> None:
  """Write a policy from sensors as the files CONTROLLER in a folder, with a manifest of their inputs."""
  _write(controller, json.dumps({**facts, **facts["controller"]}), *(folder / name for name in CONTROLLER))


def _write(module: Deployed | FromSensors, text: str, onnx: Path, torchscript: Path) -> None:
  """Write a module in both formats, with a manifest inside."""
  inputs = tuple(zeros.repeat(2, *[1] * (zeros.ndim - 1)) for zeros in module.inputs.values())
  rows = torch.export.Dim("n")
  with _quiet():
    program: Any = torch.onnx.export(
      module,
      inputs,
      input_names=list(module.inputs),
      output_names=module.outputs,
      dynamic_shapes={"inputs": tuple({0: rows} for _ in inputs)},
      dynamo=True,
      verbose=False,
    )
    for node in program.model.graph:  # an image may be named like an operation, as "view" is
      for value in node.outputs:
        value.name = f"inner {value.name}" if value.name in module.inputs else value.name
    program.model.metadata_props[KEY] = text
    program.save(onnx)
    torch.jit.save(torch.jit.trace(module, inputs), torchscript, _extra_files={KEY: text})


@contextmanager
def _quiet() -> Iterator[None]:
  """Suppress torch's messages about itself: deprecation of TorchScript, optional packages."""
  logger = logging.getLogger("torch.onnx")
  level = logger.level
  logger.setLevel(logging.ERROR)
  with warnings.catch_warnings():
    for category in (DeprecationWarning, FutureWarning):
      warnings.simplefilter("ignore", category)
    warnings.filterwarnings("ignore", "# The axis name")  # obs and state share the axis n on purpose
    try:
      yield
    finally:
      logger.setLevel(level)


class Exported:
  """Policy read from an exported file, for `num_envs` environments; called like `Policy`, without noise."""

  def __init__(self, path: Path, num_envs: int) -> None:
    self.module: Any = None  # of TorchScript, with its buffers
    if path.suffix == ".onnx":
      runtime: Any = importlib.import_module("onnxruntime")
      session = runtime.InferenceSession(path, providers=["CPUExecutionProvider"])
      text = session.get_modelmeta().custom_metadata_map[KEY]
      self._run = lambda inputs: session.run(None, {name: value.numpy() for name, value in inputs.items()})
    else:
      found = {KEY: ""}
      with _quiet():
        self.module = module = torch.jit.load(path, _extra_files=found)
      text = found[KEY]
      self._run = lambda inputs: module(*inputs.values())
    self.facts = json.loads(text)
    self._known = self.facts["inputs"]
    self._state = torch.zeros(num_envs, self._known.get("state", {"width": 0})["width"])

  @classmethod
  def of(cls, folder: Path) -> "Exported":
    """Return the policy of an export for one robot; raise ConfigError if the folder is none."""
    file, inside = folder / NAMES[1], folder / FOLDER
    if file.is_file():
      return cls(file, 1)
    fix = "name a folder that gpurobot export has written"
    if (inside / file.name).is_file():
      fix = f"name the export in it, {inside}"
    elif checkpoint.exists(folder):
      fix = f"write gpurobot export {shlex.quote(str(folder))} first"
    raise ConfigError(f"'{folder}' has no {file.name}: {fix}")

  @torch.no_grad()
  def __call__(self, obs: Mapping[str, Tensor], restart: Tensor) -> Tensor:
    """Return actions [num_envs, num_actions] for observation groups and images; see `Policy`.

    A controller takes the numbers of its sensors beside them, by name.
    """
    device = obs["policy"].device
    inputs = {"state": self._state.masked_fill(restart.cpu().unsqueeze(1), 0)}
    for name, known in self._known.items():
      if name != "state":
        kind = getattr(torch, known.get("type", "float32"))
        inputs[name] = obs["policy" if name == "obs" else name].to(kind).cpu()
    inputs = {name: inputs[name] for name in self._known}
    values = map(torch.as_tensor, self._run(inputs))
    outputs = dict(zip(self.facts["outputs"], values, strict=True))
    self._state = outputs.get("next_state", self._state)
    return outputs["action"].to(device)
