"""Identity of what a policy sees and moves: names of columns, actions, joints and controls; its model."""

import warnings
from collections.abc import Mapping
from itertools import islice, zip_longest
from typing import Any

from gpurobot.learn.env import VecEnv
from gpurobot.learn.saved_state import check_saved
from gpurobot.settings.config import ConfigError

COLUMN = "column of '{}'"
POLICY, CRITIC = COLUMN.format("policy"), COLUMN.format("critic")


def names_of(env: VecEnv) -> dict[str, Any]:
  """Return by kind the names of columns, actions, joints and controls, in order, and digests of the model."""
  columns = {COLUMN.format(group): list(names) for group, names in env.obs_names.items()}
  return columns | dict(env.identity)


def check_hidden(source: str, then: Mapping[str, Any], width: int, env: VecEnv) -> None:
  """Raise ConfigError if a policy observed blocks that the environments hide, with the settings to show them.

  then: the names in its checkpoint, which may be older than these. width: of its observations.
  """
  columns = then.get(POLICY, ())
  wider = not columns and width > env.obs_dims["policy"]
  lost = [name for name, setting in env.hidden.items() if setting and (wider or name in columns)]
  if lost:
    settings = " ".join(dict.fromkeys(env.hidden[name] for name in lost))
    raise ConfigError(f"'{source}' observed {' and '.join(lost)}, which the policy lacks now: add {settings}")


def compare(source: str, then: Any, now: Mapping[str, Any], changed: bool, *, exact: bool = False) -> None:
  """Raise ConfigError if a column, action, joint or control had another name when a policy was trained.

  `then` are the names in its checkpoint. Another model, if not `exact`, and a checkpoint without names are a
  warning. Nothing is compared if the user says that all may have `changed`.
  """
  then = {} if changed else then
  check_saved(then, now, name=f"'{source}': names")
  undo = "undo the change in the task, its settings or its robot"
  meant = ", or add changed=true if it is meant"
  fields = [key for key, own in now.get("model", {}).items() if then.get("model", {}).get(key, own) != own]
  for kind in [kind for kind in now if kind in then and kind != "model"]:
    before, after = then[kind], now[kind]
    # Objects of another scene, which is another model, may follow.
    end = min(len(before), len(after)) or None if kind == "joint" and fields else None
    for index, (old, new) in enumerate(islice(zip_longest(before, after, fillvalue="(none)"), end)):
      if old != new:
        place = f"{kind} ".replace(" ", f" {index} ", 1).strip()
        confirm = meant if len(before) == len(after) or kind in ("joint", "control") else ""
        was = f"'{source}' was trained with {place} as {old!r}, which is {new!r} now"
        raise ConfigError(f"{was}: {undo}{confirm}")
  other = f"the model of '{source}' had another {', '.join(fields[:3])}{', ...' if fields[3:] else ''}"
  if fields and exact:
    raise ConfigError(f"{other}, and resume= needs the same: {undo}, start a run by checkpoint={meant}")
  older = f"'{source}' is of an older gpurobot and names no actions and joints: their numbers are compared"
  unnamed = "joint" in now and "joint" not in then and not changed
  if fields or unnamed:
    warnings.warn(older if unnamed else other, stacklevel=2)
