"""Manifest of an exported policy, policy.json: inputs and outputs, the robot's parts, rates, units."""

import dataclasses
import inspect
import math
from collections.abc import Callable, Collection, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import torch

from gpurobot.deploy.deployed import Deployed
from gpurobot.deploy.from_sensors import FromSensors
from gpurobot.learn.env import VecEnv
from gpurobot.learn.identity import POLICY
from gpurobot.settings.config import TrainConfig, to_dict
from physics import Model
from tasks.base import Task
from tasks.shared.steadiness import torque_limits

ROOT = Path(__file__).resolve().parents[2]
EXACT = 1e-6  # largest error that counts as rounding, of an observation's column
JOINTS = ("free", "ball", "slide", "hinge")  # by MuJoCo's mjtJoint
CONVENTIONS = {
  "units": "SI: m, rad, s, kg, N, N m; observation blocks that the task scales are in the scaled unit",
  "joints": "number in the column of angles = sign * (angle in the robot's file - zero), in rad or m; kp and "
  "kd in N m/rad and N m s/rad; null where the model does not know it, as the speed limit of a motor",
  "wheels": "ctrl is a target speed in rad/s of a joint with kp 0: its torque is kd * (ctrl - speed)",
  "quaternions": "w, x, y, z; from the body's axes to the world's",
  "velocity of a free joint": "linear in the world's axes, then angular in the body's",
  "columns": "of the observation: scale * (number - offset), with the number of the sensor's column",
  "shapes": "[n, width] float32, a row for each of n robots; images are [n, height, width, channels]",
}


def describe(config: TrainConfig, env: VecEnv, deployed: Deployed) -> dict[str, Any]:
  """Return the manifest as plain values for JSON; for an environment that is no `Task` it is shorter."""
  known: dict[str, Any] = {"format": 1, "task": Path(config.task).name, "conventions": CONVENTIONS}
  known |= {"inputs": _inputs(deployed), "outputs": _outputs(deployed), "inside": _inside(deployed)}
  columns = _columns(env) if isinstance(env, Task) else None
  known |= {"yours": _yours(env, deployed, columns is not None)}
  if not isinstance(env, Task):
    return known
  known |= {"settings": _finite(to_dict(env.config)), **_task(env, deployed.names)}
  known["observation"] |= {} if columns is None else {"columns": columns}
  controls = deployed.controls
  known["control"] |= {
    "offset": None if controls is None else controls.offset.tolist(),
    "gain": None if controls is None else controls.gain.tolist(),
    "filter": None if deployed.filter is None else deployed.filter.facts(),
  }
  if columns is not None:
    controller = FromSensors(deployed, known)
    known["controller"] = {"inputs": _inputs(controller), "outputs": _outputs(controller)}
  return known


def _finite(settings: dict[str, Any]) -> dict[str, Any]:
  """Return plain settings with inf (no limit) replaced by null, as JSON has no inf."""
  return {
    key: None if isinstance(value, float) and not math.isfinite(value) else value
    for key, value in settings.items()
  }


def _inputs(deployed: Deployed | FromSensors) -> dict[str, Any]:
  meanings = {
    "obs": "the observation as the task computes it, not normalised",
    "state": "zeros at the start of an episode, then next_state of the previous step",
  }
  known: dict[str, Any] = {}
  for name, zeros in deployed.inputs.items():
    if name in deployed.images:
      image = deployed.images[name]
      known[name] = {
        "shape": list(image.shape),
        "type": str(zeros.dtype).removeprefix("torch."),
        "range": [image.low, image.high],
        "meaning": "rows from the top, columns from the left, channels; the oldest frame of a stack first",
      }
    else:
      known[name] = {"width": zeros.shape[1], "meaning": meanings.get(name, "the columns of this sensor")}
  return known


def _outputs(deployed: Deployed | FromSensors) -> dict[str, str]:
  """Return the meaning of each output, in order."""
  meanings = {
    "action": "the task's action: in [-1, 1], or the index of each discrete action (int64)",
    "ctrl": "the robot's controls: MuJoCo's ctrl, in the order of control.controls",
    "estimate": f"estimates of {', '.join(dict.fromkeys(deployed.estimates))}, in the units of the task",
    "obs": "the observation of this step, without earlier ones",
    "next_state": "the state after this step",
  }
  return {name: meanings[name] for name in deployed.outputs}


def _inside(deployed: Deployed) -> list[str]:
  """List the computations inside the exported policy."""
  chosen = deployed.head.sample_dtype is torch.int64
  parts = [
    "the most likely discrete actions" if chosen else "the policy's means, without noise, clipped to [-1, 1]"
  ]
  if deployed.images:
    parts.insert(0, "mapping the range of each image to [0, 1]; values outside are clipped")
  if deployed.bound is not None and "obs" in deployed.inputs:
    normalised = "normalisation of observations to zero mean and unit variance, clipped at"
    parts.insert(0, f"{normalised} {deployed.bound:g} standard deviations")
  if deployed.controls is not None:
    if deployed.filter is not None:
      parts.append("filtered += clip(share * (action - filtered), -most, most), see control.filter")
    sent = "action" if deployed.filter is None else "filtered"
    parts.append(f"controls from actions: control.offset + {sent} @ control.gain")
  return parts


def _yours(env: VecEnv, deployed: Deployed, spelled_out: bool) -> list[str]:
  """List the duties of the program that runs the policy; `spelled_out`: the observation has columns."""
  parts = ["the observation and the effect of an action, as the task defines them"]
  if isinstance(env, Task):
    parts = ["the observation: its columns from the numbers of the sensors"]
    if not spelled_out:
      parts = [f"the observation as in {_place(env.observe)}, without the noise and delays of training"]
    if deployed.controls is None:
      places = f"{_place(env.control)} and {_place(env.simulate)}"
      parts.append(f"controls from actions (they depend on more than the action), see {places}")
  if deployed.state_width:
    parts.append("the state: pass next_state back as state")
  return parts


def _place(method: Callable[..., Any]) -> str:
  """Return the source file and the name of a method."""
  path = Path(str(inspect.getsourcefile(inspect.unwrap(method))))
  return f"{_short(path)}: {method.__qualname__}"


def _short(path: Path) -> str:
  """Return a path relative to the repository, or the name of a file outside of it."""
  return str(path.relative_to(ROOT) if path.is_relative_to(ROOT) else path.name)


def _task(env: Task, names: Mapping[str, Any]) -> dict[str, Any]:
  """Return rates, observation, commands and the robot's parts; `names` are from the policy's training."""
  robot, model = env.scene(env.config), env.model
  columns = names.get(POLICY, env.obs_names["policy"])
  columns = columns[: len(columns) // env.observations.lengths["policy"]]
  joints = [_joint(env, index) for index in range(model.njnt)]
  servos = {joint["actuator"] for joint in joints if joint.get("kp")}
  return {
    "robot": _short(robot) if isinstance(robot, Path) else f"see {_place(env.scene)}",
    "rate": {"control [Hz]": 1 / env.dt, "step [s]": env.dt, "physics step [s]": model.timestep},
    "observation": {
      "blocks": [
        {"name": name, "start": columns.index(name), "width": columns.count(name)}
        for name in dict.fromkeys(columns)
      ],
      "history, the oldest first": env.observations.lengths["policy"],
      **({"frames of an image, the oldest first": env.observations.stacks} if env.images else {}),
    },
    "sensors": [{"name": name, **dataclasses.asdict(sensor)} for name, sensor in env.sensors.items()],
    "commands": [
      {"name": name, "range": [low, high], "unit": unit}
      for name, (low, high, unit) in (env.commands.ranges if env.commands else {}).items()
    ],
    "actions": {"names": names.get("action", list(env.action_names())), "choices": list(env.choices)},
    "trained with": {kind: names.get(kind) for kind in ("joint", "control")},
    "control": {"controls": _controls(model)},
    "joints": joints,
    "actuators": [_actuator(model, index, servos) for index in range(model.nactuator)],
    "key_frames": {
      name: {"qpos": model.key_qpos[index].tolist(), "ctrl": model.key_ctrl[index].tolist()}
      for index, name in enumerate(model.key_names)
    },
  }


def _columns(env: Task) -> list[dict[str, Any]] | None:
  """Return block, sensor, sensor's column, scale and offset of each column of an observation.

  They are read off `policy_blocks`: one number of a sensor after the other is 1, the others 0. None if the
  task declares no sensors, observes other blocks, or has a column that is no affine map of one number.
  """
  sources = [(name, column) for name, sensor in env.sensors.items() for column in sensor.columns]
  if not sources:
    return None
  ones = torch.eye(len(sources), dtype=torch.float64, device=env.device)
  probes = torch.cat([0 * ones[:1], ones, torch.full_like(ones[:1], 2.0)])
  widths = [len(sensor.columns) for sensor in env.sensors.values()]
  blocks = env.policy_blocks(dict(zip(env.sensors, probes.split(widths, 1), strict=True)))
  found = []
  for name, column in ((name, column) for name, block in blocks.items() for column in block.T.tolist()):
    start, *moved, end = column
    used = [index for index, value in enumerate(moved) if abs(value - start) > EXACT]
    scale = sum(moved[index] - start for index in used)
    if len(used) != 1 or abs(start + 2 * scale - end) > EXACT:
      return None
    (sensor, own), offset = sources[used[0]], -start / scale
    affine = {"scale": round(scale, 7), "offset": round(offset, 7) + 0.0}  # no -0.0
    found.append({"block": name, "sensor": sensor, "column": own, **affine})
  observed = env.obs_names["policy"][: sum(env.observations.widths["policy"].values())]
  return found if [column["block"] for column in found] == observed else None


def _controls(model: Model) -> list[dict[str, Any]]:
  """Return the actuator and the range of each control."""
  names = np.repeat(model.actuator_names, model.actuator_ctrlnum).tolist()
  limits = zip(names, model.actuator_ctrlrange.tolist(), model.actuator_ctrllimited, strict=True)
  return [{"actuator": name, "range": span if limited else None} for name, span, limited in limits]


def _joint(env: Task, index: int) -> dict[str, Any]:
  """Return a joint's name, type, addresses in qpos and qvel, and range; and what its motor is like."""
  model, name, kind = env.model, env.model.joint_names[index], JOINTS[env.model.jnt_type[index]]
  qpos, qvel = int(model.jnt_qposadr[index]), int(model.jnt_dofadr[index])
  span = model.jnt_range[index].tolist() if model.jnt_limited[index] else None
  known = {"name": name, "type": kind, "qpos": qpos, "qvel": qvel, "range": span}
  return known if kind in ("free", "ball") else known | _motor(env, name, qpos, qvel)


def _motor(env: Task, joint: str, qpos: int, qvel: int) -> dict[str, Any]:
  """Return column, sign and zero of a hinge's or slide's angle, its home, and constants of its motor.

  The constants are None where no actuator drives it; the model knows no limit of a motor's speed.
  """
  model, columns = env.model, env.sensors["angles"].columns if "angles" in env.sensors else ()
  home = model.key_qpos[model.key_names.index("home")] if "home" in model.key_names else model.qpos0
  driven = (model.actuator_trntype == 0) & (model.actuator_trnid[:, 0] == model.joint_id(joint))
  index = int(driven.argmax()) if driven.any() else None
  gear = 1.0 if index is None else float(abs(model.actuator_gear[index, 0]))
  servo = index is not None and bool(model.actuator_is_servo[index])
  speed = index is not None and _of_speed(model, index)
  most = math.inf if index is None else gear * torque_limits(model)[index]
  return {
    "column": columns.index(joint) if joint in columns else None,
    "sign": 1,
    "zero": 0.0,
    "home": float(home[qpos]),
    "actuator": None if index is None else model.actuator_names[index],
    "kp": -(gear**2) * float(model.actuator_biasprm[index, 1]) + 0.0 if servo or speed else None,
    "kd": -(gear**2) * float(model.actuator_biasprm[index, 2]) if servo or speed else None,
    "torque_limit": most if math.isfinite(most) else None,
    "speed_limit": None,
    "armature": float(model.dof_armature[qvel]),
    "damping": float(model.dof_damping[qvel]),
    "friction_loss": float(model.dof_frictionloss[qvel]),
  }


def _of_speed(model: Model, index: int) -> bool:
  """Return whether an actuator is a servo of its joint's speed."""
  parts = "gaintype", "dyntype", "biastype"
  gain, bias = model.actuator_gainprm[index, 0], model.actuator_biasprm[index].tolist()
  plain = [int(getattr(model, f"actuator_{part}")[index]) for part in parts] == [0, 0, 1]
  return plain and bias[1] == 0 and bias[2] == -gain


def _actuator(model: Model, index: int, servos: Collection[str]) -> dict[str, Any]:
  """Return an actuator's joint, gear and delay; of one that `servos` lacks also MuJoCo's parameters."""
  name, joint = model.actuator_names[index], model.actuator_trntype[index] == 0
  known = {
    "name": name,
    "joint": model.joint_names[model.actuator_trnid[index, 0]] if joint else None,
    "gear": float(model.actuator_gear[index, 0]),
    "delay [s]": float(model.actuator_delay[index]),
  }
  if name in servos:
    return known
  force = model.actuator_forcerange[index].tolist() if model.actuator_forcelimited[index] else None
  parts = {key: getattr(model, f"actuator_{key}")[index].tolist() for key in ("gainprm", "biasprm", "dynprm")}
  return known | {"force_range": force} | parts
