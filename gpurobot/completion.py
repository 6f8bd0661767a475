"""Completion of the command `gpurobot` in a shell: eval "$(gpurobot completion)" in ~/.bashrc or ~/.zshrc.

It completes programs, and for `train` and `sweep` keys and their values. `gpurobot completion "<line>"`
prints what may follow a line.
"""

import sys
from collections.abc import Iterable

import tasks
from gpurobot.command import PROGRAMS
from gpurobot.config import AlgorithmName, Leaf, TrainConfig, leaves, unused_keys

# Shells divide a line at = too, so that they complete a value alone.
SCRIPT = """\
[ -n "${ZSH_VERSION-}" ] && autoload -U +X bashcompinit && bashcompinit
_gpurobot() {
  local IFS=$'\\n'
  COMPREPLY=($(gpurobot completion "${COMP_LINE:0:COMP_POINT}" 2> /dev/null))
  case "${COMPREPLY[0]-}" in *=) compopt -o nospace 2> /dev/null ;; esac
}
complete -o default -F _gpurobot gpurobot"""
TRAINS = ("train", "sweep")  # programs that take the keys of a training


def candidates(line: str) -> list[str]:
  """Return how the last word of a line, or its value after =, may go on; none: file names."""
  _, *words = f"{line}|".split()  # a mark that ends the last word, which may be empty
  last = words.pop().removesuffix("|") if words else ""
  if not words:
    return _begin(last, PROGRAMS)
  if words[0] not in TRAINS:
    return []
  known = {key: leaf for key, leaf in leaves(TrainConfig()).items() if key != "env"}
  key, equals, value = last.partition("=")
  if equals:
    return _begin(value, _values(key, known[key])) if key in known else []
  return [f"{name}=" for name in _begin(last, _keys(known, words))]


def _keys(known: dict[str, Leaf], words: list[str]) -> list[str]:
  """Return the keys of a training with the algorithm that the words name."""
  named = [word.removeprefix("algorithm=") for word in words if word.startswith("algorithm=")]
  unused = unused_keys((named or [AlgorithmName.ppo])[-1])
  return [key for key in known if not {key, key.partition(".")[0]} & unused]


def _values(key: str, leaf: Leaf) -> Iterable[str]:
  """Return the values of a setting, if there are only some."""
  if key == "task":
    return tasks.available()
  return ("true", "false") if leaf.kind is bool else getattr(leaf.kind, "__members__", ())


def _begin(start: str, words: Iterable[str]) -> list[str]:
  return [word for word in words if word.startswith(start)]


def main(argv: list[str]) -> None:
  """Print the shell's script, or what may follow the line that `argv` holds."""
  if {"--help", "-h"} & {*argv}:
    print(__doc__)
  else:
    print("\n".join(candidates(argv[0])) if argv else SCRIPT)


if __name__ == "__main__":
  main(sys.argv[1:])
