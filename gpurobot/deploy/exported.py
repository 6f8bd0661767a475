"""Exported policy files, ONNX and TorchScript: writer and reader."""

import importlib
import json
import logging
import re
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from gpurobot.deploy.deployed import Deployed

NAMES = ("policy.onnx", "policy.pt", "policy.json")  # ONNX, TorchScript, and the manifest that both embed
KEY = "gpurobot"  # key of the embedded manifest


def write(deployed: Deployed, facts: Mapping[str, Any], folder: Path) -> None:
  """Write a policy and its manifest `facts` as the files NAMES in a folder."""
  text = json.dumps(facts, indent=2, allow_nan=False)
  text = re.sub(r"\[[^\[\]{}\"]*\]", lambda numbers: " ".join(numbers.group().split()), text)  # on one line
  onnx, torchscript, manifest = (folder / name for name in NAMES)
  inputs = tuple(zeros.repeat(2, *[1] * (zeros.ndim - 1)) for zeros in deployed.inputs.values())
  rows = torch.export.Dim("n")
  with _quiet():
    program: Any = torch.onnx.export(
      deployed,
      inputs,
      input_names=list(deployed.inputs),
      output_names=deployed.outputs,
      dynamic_shapes={"inputs": tuple({0: rows} for _ in inputs)},
      dynamo=True,
      verbose=False,
    )
    for node in program.model.graph:  # an image may be named like an operation, as "view" is
      for value in node.outputs:
        value.name = f"inner {value.name}" if value.name in deployed.inputs else value.name
    program.model.metadata_props[KEY] = text
    program.save(onnx)
    torch.jit.save(torch.jit.trace(deployed, inputs), torchscript, _extra_files={KEY: text})
  manifest.write_text(text + "\n")


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

  @torch.no_grad()
  def __call__(self, obs: Mapping[str, Tensor], restart: Tensor) -> Tensor:
    """Return actions [num_envs, num_actions] for observation groups and images; see `Policy`."""
    device = obs["policy"].device
    inputs = {"obs": obs["policy"].float().cpu()} if "obs" in self._known else {}
    for name, known in self._known.items():
      if "shape" in known:
        inputs[name] = obs[name].to(getattr(torch, known["type"])).cpu()
    if self._state.shape[1]:
      inputs["state"] = self._state.masked_fill(restart.cpu().unsqueeze(1), 0)
    values = map(torch.as_tensor, self._run(inputs))
    outputs = dict(zip(self.facts["outputs"], values, strict=True))
    self._state = outputs.get("next_state", self._state)
    return outputs["action"].to(device)
