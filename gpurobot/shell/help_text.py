"""Help text of a program: its settings with their defaults, meanings, units and values."""

import operator
import shutil
import sys
import textwrap
from collections.abc import Collection
from typing import Any

from gpurobot.settings.checks import is_among, unused_keys
from gpurobot.settings.config import AlgorithmName, Leaf, TrainConfig, arguments, leaves, to_dict

USAGE = "usage: {program} [key=value ...]\n"
# Keys that people set, of a training and of its algorithm.
COMMON = (
  *("task", "algorithm", "teacher", "num_envs", "seed", "device", "threads", "max_steps", "max_seconds"),
  *("run_dir", "checkpoint", "resume", "record_every", "log.wandb"),
)
COMMON_OF_ALGORITHM = (
  *("horizon", "epochs", "minibatches", "gamma", "lr", "kl_target", "entropy_coef", "hidden", "log_std_init"),
  *("updates_per_step", "batch_size", "buffer_size", "n_step", "reward_scale", "mix_steps"),
)
REST = "--help=all prints every key with its meaning. Settings of the task: "
OTHERS = """
Add algorithm={others} to see the settings of that algorithm instead.
config=<file>,... takes settings from YAML files or a run's config.json; arguments beside it win.
"""
MOST_INDENT = 36  # largest indent of the meanings in the help text [columns]


def of_training(config: TrainConfig, everything: bool = False) -> str:
  """Return the help text of a training: the settings that people set, or `everything`."""
  others = [name for name in AlgorithmName if name is not config.algorithm]
  unused, rest = unused_keys(config.algorithm), ""
  if not everything:
    known = {*COMMON} | {f"{name}.{key}" for name in AlgorithmName for key in COMMON_OF_ALGORITHM}
    unused |= leaves(config).keys() - known
    own = ", ".join(f"env.{key}" for key in leaves(config.env))
    rest = "\n" + textwrap.fill(REST + own, shutil.get_terminal_size().columns) + "\n"
  text = of_settings(config, "python train.py", unused)
  return text + rest + OTHERS.format(others=" or ".join(others))


def of_settings(config: Any, program: str, without: Collection[str] = ()) -> str:
  """Return the help text, wrapped to the terminal: a heading for each dataclass, then its fields.

  The keys and groups of keys `without` are left out. A field is `key=default  meaning [unit]`,
  followed by its allowed values if the meaning does not list them.
  """
  groups: dict[str, list[tuple[str, str]]] = {}
  plain = to_dict(config)
  for key, leaf in leaves(config).items():
    if is_among(key, without):
      continue
    groups.setdefault(key.rpartition(".")[0], []).append((arguments({key: plain[key]}), _meaning(leaf)))
  indent = min(MOST_INDENT, 4 + max(len(left) for lines in groups.values() for left, _ in lines))
  wrapper = textwrap.TextWrapper(shutil.get_terminal_size().columns, " " * indent, " " * indent)
  by_command = sys.argv[0].startswith("gpurobot ")  # gpurobot/shell/command.py says so
  text = USAGE.format(program=sys.argv[0] if by_command else program)
  for group, lines in groups.items():
    text += f"\n{_heading(operator.attrgetter(group)(config) if group else config)}\n"
    for left, meaning in lines:
      right = wrapper.fill(meaning or "-")
      fits = len(left) + 4 <= indent
      text += f"  {left:<{indent - 4}}  {right.lstrip()}\n" if fits else f"  {left}\n{right}\n"
  return text


def _heading(part: Any) -> str:
  """Return the first line of a dataclass's docstring; Python's own docstring is the signature."""
  first = str(type(part).__doc__).partition("\n")[0].rstrip(".")
  return "Settings" if first.startswith(f"{type(part).__name__}(") else first


def _meaning(leaf: Leaf) -> str:
  """Return the meaning of a setting, its unit and its allowed values."""
  meaning = leaf.metadata.get("help", "")
  unit = f" [{leaf.metadata['unit']}]" if leaf.metadata.get("unit") else ""
  names = list(getattr(leaf.kind, "__members__", {}))
  words = "" if all(name in meaning for name in names) else f" ({', '.join(names)})"
  return f"{meaning}{unit}{words}"
