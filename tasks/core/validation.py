"""Validation of a task before its first step: its methods and the tensors that they return.

Only `check_finite` reads values from the device. It is called once.
"""

import difflib
import inspect
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor

from tasks.core.errors import TaskError

METHODS = (  # methods that a task may override
  "scene",
  "action_names",
  "setup",
  "initial_state",
  "control",
  "simulate",
  "update",
  "reward",
  "terminated",
  "success",
  "observe",
  "measure",
  "policy_blocks",
  "metrics",
  "goals",
  "symmetry",
)
KEPT = {  # methods that a task may not override, and what to write instead
  "__init__": "setup(self)",
  "reset": "initial_state(self), which says where episodes start",
  "step": "control, update, reward, terminated and observe, the parts of a step",
}
ALIKE = 0.85  # names more similar than this count as misspelt: terminate, rewards, init_state
# Groups that no agent observes: what a teacher saw, and what a style reward compares with a reference.
APART = ("teacher", "style")
GROUPS = ("policy", "critic", *APART)
MOST_SUBSTEPS = 1000  # more would run on in silence


def check_class(kind: type, base: type) -> None:
  """Raise TaskError if a class overrides a method of the base, misspells one, or changes its arguments."""
  for name, value in vars(kind).items():
    if name in KEPT:
      raise TaskError(f"a task has no {name}() of its own: write {KEPT[name]}")
    if name in METHODS and not _takes(value, getattr(kind, name), getattr(base, name)):
      raise TaskError(f"{name}() cannot be called as it is written: write {_header(base, name)}")
    near = difflib.get_close_matches(name, METHODS, n=1, cutoff=ALIKE)
    if (
      near
      and callable(value)
      and not hasattr(base, name)
      and getattr(kind, near[0]) is getattr(base, near[0])
    ):
      raise TaskError(f"nothing calls {name}(): write {near[0]}(), or _{name}() if the name is meant")


def _takes(written: Any, method: Any, other: Any) -> bool:
  """Return whether a method, as written and as bound to its class, takes the arguments of another."""
  try:
    inspect.signature(method).bind(*inspect.signature(other).parameters)
  except (TypeError, ValueError):  # no function, or one without self
    return False
  return not isinstance(written, staticmethod)


def _header(base: type, name: str) -> str:
  """Return the header line of a method of the base."""
  method = inspect.getattr_static(base, name)
  function = inspect.unwrap(getattr(method, "__func__", method))
  arguments = ", ".join(inspect.signature(function).parameters)
  return f"{'@classmethod ' if isinstance(method, classmethod) else ''}def {name}({arguments})"


def check_complete(kind: Any, base: Any, config: Any) -> None:
  """Raise TaskError if a class lacks a required part, or if its Config does not derive from base.Config."""
  if not hasattr(kind, "robot") and kind.scene.__func__ is base.scene.__func__:
    raise TaskError("Task has no robot: write robot = <MJCF file or text>")
  for name in ("vary", "outputs", "choices"):
    if isinstance(getattr(kind, name), str | int):
      raise TaskError(f"{name} is {_kind(getattr(kind, name))}: write {name} = ({getattr(kind, name)!r},)")
  if not all(isinstance(count, int) and count > 1 for count in kind.choices):
    raise TaskError(f"choices = {kind.choices}: each is a number of choices, 2 or more")
  for name in ("reward", "observe"):
    if getattr(kind, name) is getattr(base, name):
      raise TaskError(f"Task has no {name}(): write {_header(base, name)}")
  for name, low in (("episode_steps", 1), ("substeps", 1), ("keep_states", 0)):
    if not isinstance(getattr(config, name, None), int) or getattr(config, name) < low:
      raise TaskError(f"Config has no {name} of {low} or more: write class Config(base.Config)")
  if config.substeps > MOST_SUBSTEPS:
    raise TaskError(f"substeps={config.substeps} is out of range; the nearest is {MOST_SUBSTEPS}")


def count_actions(names: Any) -> int:
  """Return the number of actions; raise TaskError if there is none, or if these are no names."""
  if isinstance(names, str) or not isinstance(names, Sequence | None):
    raise TaskError(f"action_names() returns {_kind(names)}: return a list of names, ['name']")
  if not names:
    raise TaskError("the task has no actions: give the robot an actuator, or write action_names()")
  return len(names)


def by_name(source: str, values: Any) -> Mapping[str, Any]:
  """Return `values` if it is a mapping; otherwise raise TaskError."""
  if not isinstance(values, Mapping):
    raise TaskError(f"{source} returns {_kind(values)}: return tensors by name, {{'name': tensor}}")
  for name in values:
    if not isinstance(name, str):
      raise TaskError(f"{source} names a tensor {name!r}: a name is a text, '{name}'")
  return values


def check_outcome(terminated: Any, success: Any, metrics: Any, like: Tensor) -> None:
  """Raise TaskError unless these results of a step are as `Task` declares them; `like` is [num_envs]."""
  check_tensor("terminated()", terminated, like, torch.bool)
  if success is not None:
    check_tensor("success()", success, like, torch.bool)
  check_terms("metrics()", metrics, like)


def check_terms(source: str, terms: Any, like: Tensor) -> None:
  """Raise TaskError unless `terms` are tensors [num_envs] by name, on the device of `like` [num_envs]."""
  for name, term in by_name(source, terms).items():
    check_tensor(f"{source} '{name}'", term, like)


def check_tensor(
  what: str, value: Any, like: Tensor, dtype: torch.dtype | None = None, *, wide: bool = False
) -> None:
  """Raise TaskError unless `value` is a tensor with the shape and device of `like` [...] and this dtype.

  If `wide`, further dimensions may follow.
  """
  if not isinstance(value, Tensor):
    raise TaskError(f"{what} is {_kind(value)}: return a tensor [num_envs]")
  if (value.shape[: like.ndim] if wide else value.shape) != like.shape:
    needed = f"{list(like.shape)}{' or wider' if wide else ''}"
    raise TaskError(f"{what} has shape {list(value.shape)}, not {needed}: the first index is the environment")
  if value.device != like.device:
    raise TaskError(f"{what} is on {value.device}, not {like.device}: make it with device=self.device")
  if value.is_complex() or value.layout is not torch.strided:
    raise TaskError(f"{what} is of {value.dtype} and {value.layout}: return real numbers in a dense tensor")
  if dtype is not None and value.dtype != dtype:
    raise TaskError(f"{what} is of {value.dtype}, not {dtype}: return a comparison")


def check_blocks(groups: Any, like: Tensor) -> None:
  """Raise TaskError unless `groups` are observation groups: blocks [num_envs] or [num_envs, ...] by name."""
  if not isinstance(groups, Mapping) or not all(isinstance(blocks, Mapping) for blocks in groups.values()):
    raise TaskError("observe() returns no blocks by group: return {'policy': {'name': tensor, ...}}")
  if "policy" not in groups or not {*groups} <= {*GROUPS}:
    raise TaskError(f"observe() returns the groups {[*groups]}: they are {', '.join(GROUPS)}")
  for group, blocks in groups.items():
    if not blocks:
      raise TaskError(f"observe() '{group}' is empty: give it a block")
    for name, block in by_name(f"observe() '{group}'", blocks).items():
      check_tensor(f"observe() '{group}' '{name}'", block, like, wide=True)
      if not block.numel():
        raise TaskError(
          f"observe() '{group}' '{name}' has shape {list(block.shape)}, no numbers: leave it out"
        )


def check_style(reference: Any, groups: Mapping[str, Any]) -> None:
  """Raise TaskError unless there is a style reference if there is a group `style`, and only then."""
  if ("style" in groups) != isinstance(reference, Tensor):
    raise TaskError(
      "the group 'style' of observe() and self.style_reference, which setup() sets, need each other: write "
      "both, or neither"
    )


def check_symmetry(symmetry: Any, choices: tuple[int, ...], images: Collection[str]) -> None:
  """Raise TaskError if a task with discrete actions, or with images, has a mirror."""
  if symmetry and images:
    raise TaskError("symmetry() is of numbers, and this task observes images: return {}")
  if symmetry and choices:
    raise TaskError("symmetry() is of actions in [-1, 1]; this task has choices")


def check_views(owner_name: str, owner: Any, views: Mapping[str, Any]) -> None:
  """Raise TaskError if an attribute of `owner` is no longer the tensor in `views`."""
  for name, view in views.items():
    if isinstance(view, Tensor) and getattr(owner, name) is not view:
      attribute = f"{owner_name}.{name}"
      raise TaskError(f"{attribute} was rebound, which changes nothing: write {attribute}[:] = ...")


def look(task: Any, name: str, *owners: Any, call: Callable[[], Any] | None = None) -> Any:
  """Call a method of a task, or `call`; raise TaskError if it changes a tensor of an owner in place."""
  tensors = [
    (key, value)
    for owner in owners
    for key, value in vars(owner).items()
    if isinstance(value, Tensor) and not value.is_inference()  # inference tensors have no version
  ]
  versions = [value._version for _, value in tensors]
  returned = (call or getattr(task, name))()
  for (key, value), version in zip(tensors, versions, strict=True):
    if value._version != version:
      what = f"self.{key}" if value is getattr(task, key, None) else "the simulation"
      raise TaskError(f"{name}() changes {what} in place: let it work on a copy, .clone()")
  return returned


def check_finite(values: Mapping[str, Tensor], limit: float) -> None:
  """Raise TaskError if one of the tensors by name [num_envs, ...] diverges in every environment."""
  for name, value in values.items():
    worst = value.float().abs().reshape(len(value), -1).amax(1)
    if not (worst < limit).any():
      hint = "shorten the timestep, or look for parts that overlap at the start"
      if not name.startswith("self.sim."):
        hint = "guard its divisions, roots and logarithms, or scale it"
      raise TaskError(f"{name} is {worst[0]:g} after the first step, in every environment: {hint}")


def check_step(task: Any, limit: float) -> None:
  """Take a step, method by method; raise TaskError at the first wrong result.

  This changes the state of the task. Numbers of magnitude `limit` or more count as diverged.
  """
  like, views = task.episode_steps, dict(vars(task.sim))
  task.action.zero_()
  task.episode_steps.add_(1)
  for name in ("control", "simulate", "update"):
    returned = getattr(task, name)()
    if returned is not None:
      raise TaskError(
        f"{name}() returns {_kind(returned)}, which is lost: write it in place, as self.sim.ctrl[:]"
      )
  rewards, terminated = look(task, "reward", task.sim), look(task, "terminated", task.sim)
  success, metrics = look(task, "success", task.sim), look(task, "metrics", task.sim)
  blocks = look(task, "observe", task.sim, task)  # a step calls observe() twice
  check_terms("reward()", rewards, like)
  check_outcome(terminated, success, metrics, like)
  check_blocks(blocks, like)
  for name, event in task.events.items():
    look(task, name, task.sim, task, call=event.candidates)
  check_views("self.sim", task.sim, views)
  seen = {f"observe() '{group}' '{name}'": b for group, named in blocks.items() for name, b in named.items()}
  paid = {f"reward() '{name}'": term for name, term in rewards.items()}
  check_finite({"self.sim.qpos": task.sim.qpos, "self.sim.qvel": task.sim.qvel} | seen | paid, limit)


def _kind(value: Any) -> str:
  """Describe a value of the wrong type, for an error message."""
  if value is None:
    return "None (is a return missing?)"
  name = "tensor" if isinstance(value, Tensor) else type(value).__name__
  return f"{'an' if name[0] in 'aeiou' else 'a'} {name}"
