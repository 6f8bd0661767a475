"""Exported policy as a C++17 header without dependencies: weights, memory and, of sensors, observation."""

import math
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from gpurobot.deploy.deployed import Deployed
from gpurobot.deploy.from_sensors import MEMORY
from gpurobot.deploy.on_robot import Servos, no_servos
from gpurobot.learn.distribution import NoisyHead, Squashed
from gpurobot.learn.estimator import EstimatingInput
from gpurobot.learn.network import RecurrentCore

HEADER = "policy.hpp"
TEMPLATE = Path(__file__).with_name("policy_template.hpp")
FAR = 1e9  # of a joint without range [rad]
ACTIVATIONS = {nn.ELU: "elu", nn.ReLU: "relu", nn.SiLU: "silu", nn.Tanh: "tanh"}


class UnsupportedError(ValueError):
  """A part of a policy that the header cannot express, in a line."""


def write_header(deployed: Deployed, facts: Mapping[str, Any], folder: Path) -> None:
  """Write HEADER; raise UnsupportedError if the policy has images or layers of its own."""
  if deployed.images:
    raise UnsupportedError(f"the image '{next(iter(deployed.images))}'")
  arrays, calls = dict[str, Tensor](), list[str]()
  width = deployed.shift.shape[0]
  if deployed.bound is not None:
    arrays |= {"kShift": deployed.shift, "kScale": deployed.scale}
    calls.append(f"detail::normalise(kShift, kScale, {_number(deployed.bound)}, x);")
  calls += _estimate(deployed, arrays)
  units = width + len(deployed.estimates)
  widest = max(units, deployed.core_width)
  if deployed.actor.recall is not None:
    calls.append(_recurrent(deployed.actor.recall, arrays))
    units = deployed.actor.recall.units
  calls += _layers(deployed.actor.layers, units, arrays)
  calls += _head(deployed, arrays)
  widest = max(widest, *(array.shape[-1] for array in arrays.values()))
  columns = facts.get("observation", {}).get("columns") or []
  parts = {
    "TASK": facts["task"],
    "SIZES": _sizes(deployed, facts, width, widest),
    "ARRAYS": "\n".join(_array(name, array) for name, array in arrays.items()),
    "SENSORS": _sensors(facts["sensors"]) + _servos(facts) if columns else "",
    "MEMBERS": _members(deployed, columns),
    "CALLS": "\n".join(f"    {call}" for call in calls),
    "OBSERVE": _observe(facts["sensors"], columns) if columns else "",
  }
  text = TEMPLATE.read_text()
  for name, part in parts.items():
    text = text.replace(f"@{name}@\n", part and f"{part}\n").replace(f"@{name}@", part)
  (folder / HEADER).write_text(text)


def _number(value: float) -> str:
  """Return a C++ literal of a float32, exactly; raise UnsupportedError if it is not finite."""
  if not math.isfinite(value):
    raise UnsupportedError(f"the number {value}")
  mantissa, exponent = float(value).hex().split("p")
  return f"{mantissa.rstrip('0').rstrip('.') if '.' in mantissa else mantissa}p{exponent}f"


def _numbers(values: Sequence[float]) -> str:
  return "{" + ", ".join(map(_number, values)) + "}"


def _array(name: str, array: Tensor) -> str:
  """Return a constant array; a matrix [inputs][outputs] has a row on each line."""
  rows = array.tolist()
  text = _numbers(rows) if array.ndim == 1 else "{\n" + ",\n".join(map(_numbers, rows)) + "}"
  return f"inline constexpr float {name}{''.join(f'[{size}]' for size in array.shape)} = {text};"


def _linear(name: str, weight: Tensor, bias: Tensor, arrays: dict[str, Tensor]) -> str:
  arrays |= {f"kWeight{name}": weight.T, f"kBias{name}": bias}
  return f"detail::linear(kWeight{name}, kBias{name}, x, y);"


def _recurrent(core: RecurrentCore, arrays: dict[str, Tensor]) -> str:
  cell: Any = core.cell
  for kind, weight, bias in (
    ("Input", cell.weight_ih, cell.bias_ih),
    ("Hidden", cell.weight_hh, cell.bias_hh),
  ):
    arrays |= {f"kWeight{kind}": weight.T, f"kBias{kind}": bias}
  name = "lstm" if isinstance(cell, nn.LSTMCell) else "gru"
  return f"detail::{name}(kWeightInput, kBiasInput, kWeightHidden, kBiasHidden, x, state);"


def _estimate(deployed: Deployed, arrays: dict[str, Tensor]) -> Iterator[str]:
  """Yield the calls that put estimates behind the observation in x, and show them in the task's units."""
  if not isinstance(deployed.encode, EstimatingInput):
    return
  yield "std::copy(x, x + kObservation, seen);"
  yield from _layers(deployed.encode.estimator, deployed.shift.shape[0], arrays, "Estimator")
  arrays |= {"kEstimateShift": deployed.estimate_shift, "kEstimateScale": deployed.estimate_scale}
  unit = "kEstimateShift[i] + kEstimateScale[i]"
  yield f"for (std::size_t i = 0; i < kEstimates; ++i) estimate[i] = {unit} * x[i];"
  yield "std::copy_backward(x, x + kEstimates, x + kObservation + kEstimates);"
  yield "std::copy(seen, seen + kObservation, x);"


def _layers(layers: nn.Module, width: int, arrays: dict[str, Tensor], owner: str = "") -> Iterator[str]:
  """Yield a call for each hidden layer of inputs [width]; a class of the user's own may compute anything."""
  if type(layers) is not nn.Sequential:
    raise UnsupportedError(f"the layers of {type(layers).__name__}")
  for index, layer in enumerate(layers):
    if type(layer) is nn.Linear:
      bias = layer.weight.new_zeros(layer.out_features) if layer.bias is None else layer.bias
      yield _linear(f"{owner}{index}", layer.weight, bias, arrays)
      yield f"std::copy(y, y + {layer.out_features}, x);"
      width = layer.out_features
    elif type(layer) is nn.LayerNorm and len(layer.normalized_shape) == 1 and layer.bias is not None:
      arrays |= {f"kGain{index}": layer.weight, f"kOffset{index}": layer.bias}
      yield f"detail::layer_norm(kGain{index}, kOffset{index}, {_number(layer.eps)}, x);"
    elif type(layer) in ACTIVATIONS and getattr(layer, "alpha", 1.0) == 1.0:
      yield f"for (std::size_t i = 0; i < {width}; ++i) x[i] = detail::{ACTIVATIONS[type(layer)]}(x[i]);"
    else:
      raise UnsupportedError(f"the layer {type(layer).__name__}")


def _head(deployed: Deployed, arrays: dict[str, Tensor]) -> Iterator[str]:
  """Yield the calls from features to actions and controls."""
  head: Any = deployed.head
  kind = getattr(head, "kind", None)
  sizes = getattr(head, "sizes", ())
  outputs = head.output.weight.shape[0]
  used = outputs // 2 if hasattr(head, "start") else outputs  # without the standard deviations
  yield _linear("Head", head.output.weight[:used], head.output.bias[:used], arrays)
  if sizes:
    start = 0
    for index, size in enumerate(sizes):
      yield f"action[{index}] = detail::largest(y + {start}, {size});"
      start += size
    return
  squashed = isinstance(head, NoisyHead) or (isinstance(kind, type) and issubclass(kind, Squashed))
  value = "std::tanh(y[i])" if squashed else "detail::clamp(y[i], 1.0f)"
  yield f"for (std::size_t i = 0; i < kActions; ++i) action[i] = {value};"
  if deployed.controls is None:
    return
  sent, filtered = "action", deployed.filter
  if filtered is not None:
    sent = "filtered"
    step = f"{_number(filtered.share)} * (action[i] - filtered[i])"
    if math.isfinite(filtered.most):
      arrays |= {"kMost": filtered.most / filtered.scale}
      step = f"detail::clamp({step}, kMost[i])"
    yield f"for (std::size_t i = 0; i < kActions; ++i) filtered[i] += {step};"
  arrays |= {"kControlGain": deployed.controls.gain, "kControlOffset": deployed.controls.offset}
  yield f"detail::linear(kControlGain, kControlOffset, {sent}, ctrl);"


def _actions(deployed: Deployed) -> int:
  head: Any = deployed.head
  if head.sample_dtype is torch.int64:
    return len(head.sizes)
  return int(head.output.weight.shape[0]) // (2 if hasattr(head, "start") else 1)


def _sizes(deployed: Deployed, facts: Mapping[str, Any], width: int, widest: int) -> str:
  """Return sizes and names as constants."""
  controls = 0 if deployed.controls is None else deployed.controls.offset.shape[0]
  history = facts.get("observation", {}).get("history, the oldest first", 1)
  sizes = {
    "kObservation": width,
    "kHistory": history,
    "kColumns": width // history,
    "kActions": _actions(deployed),
    "kControls": controls,
    "kState": deployed.core_width,
    "kEstimates": len(deployed.estimates),
    "kWidest": widest,
  }
  lines = [f"inline constexpr std::size_t {name} = {size};" for name, size in sizes.items()]
  names = {"kActionNames": facts.get("actions", {}).get("names"), "kEstimateNames": deployed.estimates}
  if controls:
    names["kControlNames"] = [control["actuator"] for control in facts["control"]["controls"]]
  lines += [
    f"inline constexpr const char* {name}[] = {{{', '.join(map(_quoted, own))}}};"
    for name, own in names.items()
    if own
  ]
  return "\n".join(lines)


def _quoted(text: str) -> str:
  escaped = text.replace("\\", "\\\\").replace('"', '\\"')
  return f'"{escaped}"'


def _field(name: str) -> str:
  return "".join(letter if letter.isalnum() else "_" for letter in name)


def _sensors(sensors: Sequence[Mapping[str, Any]]) -> str:
  """Return the struct of what the robot measures and is commanded."""
  lines = ["struct Sensors {"]
  for sensor in sensors:
    if sensor["name"] != MEMORY:
      meaning = f"{sensor['meaning']} [{sensor['unit'] or '1'}]: {', '.join(sensor['columns'])}"
      lines += [
        f"  // {' '.join(meaning.split())}",
        f"  float {_field(sensor['name'])}[{len(sensor['columns'])}];",
      ]
  return "\n".join([*lines, "};\n"])


def _servos(facts: Mapping[str, Any]) -> str:
  """Return joints, home, ranges and gains of the controls, if all are servos, and the control step."""
  if not facts["actuators"] or no_servos(facts):
    return ""
  own = Servos.of(facts)
  numbers = {"kHome": own.home, "kKp": own.kp, "kKd": own.kd}
  numbers |= {"kLow": own.low.clip(-FAR, FAR), "kHigh": own.high.clip(-FAR, FAR)}
  angles = next((sensor["columns"] for sensor in facts["sensors"] if sensor["name"] == "angles"), ())
  names = {"kServoJoints": own.joints, "kAngleJoints": angles}
  lines = [
    "",
    "// Servos in the order of the controls, joints of the sensor angles; control step and cycle of the",
    "// sensor clock [s].",
  ]
  lines += [
    f"inline constexpr float {name}[] = {_numbers(values.tolist())};" for name, values in numbers.items()
  ]
  for name, joints in names.items():
    lines.append(f"inline constexpr const char* {name}[] = {{{', '.join(map(_quoted, joints))}}};")
  seconds = {"kStep": facts["rate"]["step [s]"], "kCycle": facts["settings"].get("step_seconds", 1.0)}
  lines += [f"inline constexpr float {name} = {_number(value)};" for name, value in seconds.items()]
  return "\n".join([*lines, ""])


def _members(deployed: Deployed, columns: Sequence[Any]) -> str:
  """Return the policy's outputs and memory."""
  kind = "int" if deployed.head.sample_dtype is torch.int64 else "float"
  members = [f"  {kind} action[kActions] = {{}};  // in [-1, 1], or the number of each choice"]
  members += (
    ["  float ctrl[kControls] = {};  // the actuators' commands"] if deployed.controls is not None else []
  )
  members += (
    ["  float estimate[kEstimates] = {};  // in the task's units", "  float seen[kObservation] = {};"]
    if deployed.estimates
    else []
  )
  members += ["  float state[kState] = {};  // of the recurrent layer"] if deployed.core_width else []
  members += ["  float filtered[kActions] = {};  // the last action, filtered"] if deployed.filter else []
  members += (
    ["  float history[kObservation] = {};  // observations, the oldest first", "  bool started = false;"]
    if columns
    else []
  )
  return "\n".join(members)


def _observe(sensors: Sequence[Mapping[str, Any]], columns: Sequence[Mapping[str, Any]]) -> str:
  """Return the step from sensors, with the history of observations."""
  places = {sensor["name"]: sensor["columns"] for sensor in sensors}
  lines = [
    "  // Compute the action from what sensors measure. The last action and the history are remembered.",
    "  void step(const Sensors& measured) {",
    "    float now[kColumns];",
  ]
  for index, column in enumerate(columns):
    source = column["sensor"]
    owner = "action" if source == MEMORY else f"measured.{_field(source)}"
    value = f"{owner}[{places[source].index(column['column'])}]"
    value = value if not column["offset"] else f"({value} - {_number(column['offset'])})"
    value = value if column["scale"] == 1 else f"{_number(column['scale'])} * {value}"
    lines.append(f"    now[{index}] = {value};")
  lines += [
    "    const std::size_t first = started ? kHistory - 1 : 0;",
    "    if (started) std::copy(history + kColumns, history + kObservation, history);",
    "    for (std::size_t i = first; i < kHistory; ++i) {",
    "      std::copy(now, now + kColumns, history + i * kColumns);",
    "    }",
    "    started = true;",
    "    step(history);",
    "  }",
  ]
  return "\n".join(lines)
