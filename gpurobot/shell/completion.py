"""Completion of the command `gpurobot` in a shell: programs, keys and values.

bash and zsh: eval "$(gpurobot completion)" in ~/.bashrc or ~/.zshrc;
fish:         gpurobot completion fish | source in ~/.config/fish/config.fish.

`gpurobot completion "<line>"` prints the completions of a line.
"""

import json
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path

import tasks
from gpurobot.run.output import until_unread
from gpurobot.settings.checks import is_among, unused_keys
from gpurobot.settings.config import AlgorithmName, Leaf, TrainConfig, leaves
from gpurobot.shell import declared
from gpurobot.shell.programs import HELP, PROGRAMS

# bash and zsh divide a line at = too, so they complete a value alone.
SCRIPT = """\
[ -n "${ZSH_VERSION-}" ] && autoload -U +X bashcompinit && bashcompinit
_gpurobot() {
  local IFS=$'\\n'
  COMPREPLY=($(gpurobot completion "${COMP_LINE:0:$COMP_POINT}" 2> /dev/null))
  case "${COMPREPLY[*]-}" in *=) compopt -o nospace 2> /dev/null ;; esac
}
complete -o default -F _gpurobot gpurobot"""
# fish completes whole words.
FISH = """\
function __gpurobot
  set -l word (commandline --current-token --cut-at-cursor)
  set -l key (string match --regex '^[^=]*=' -- $word)
  set -l line (commandline --current-process --cut-at-cursor | string trim --left)
  set -l found (gpurobot completion "$line" 2> /dev/null | string match --invert '')
  set --query found[1]; or set found (__fish_complete_path (string replace -- "$key" '' $word))
  printf '%s\\n' "$key"$found
end
complete --command gpurobot --no-files --arguments '(__gpurobot)'"""
TRAINS = ("train", "sweep")  # programs that take the keys of a training
WORDS = {"tasks": ("describe", "new", "from", "debug")}  # keys of programs without settings
SHOWN = "play"  # the program with the settings of `demo`


def candidates(line: str) -> list[str]:
  """Return the completions of the last word of a line, or of its value after =; none: file names."""
  _, *words = f"{line}|".split()  # a mark that ends the last word, which may be empty
  last = words.pop().removesuffix("|") if words else ""
  if not words:
    return _begin(last, PROGRAMS)
  program, *words = words
  if program == "demo" and not words and "=" not in last:
    return _begin(last, _demos())
  known = _settings(program, words)
  key, equals, value = last.partition("=")
  if equals:
    return _begin(value, _values(key, known.get(key)))
  return [f"{name}=" for name in _begin(last, [*known, *WORDS.get(program, ())])]


def _settings(name: str, words: Sequence[str]) -> dict[str, Leaf]:
  """Return the settings of a program by key, with the settings of the task that the other words name."""
  program = PROGRAMS[SHOWN if name == "demo" else name] if name in PROGRAMS else None
  known: dict[str, Leaf] = {}
  if program and program.settings:
    known |= leaves(getattr(declared.read(program.module), program.settings)())
  if name in TRAINS:
    known |= _of_training(words)
  if known.pop("env", None) or name == "tasks":
    module = tasks.module_name(_task(name, words))
    known |= leaves(declared.read(module).Config(), "env.") if module else {}
  return known


def _of_training(words: Sequence[str]) -> dict[str, Leaf]:
  """Return the settings of a training with the algorithm that the words name."""
  named = [word.removeprefix("algorithm=") for word in words if word.startswith("algorithm=")]
  unused = unused_keys((named or [AlgorithmName.ppo])[-1])
  known = leaves(TrainConfig())
  return {key: leaf for key, leaf in known.items() if not is_among(key, unused)}


def _task(name: str, words: Sequence[str]) -> str:
  """Return the task that the words name, or the task of the named run folder or demo; "" if none."""
  given = dict(word.partition("=")[::2] for word in words)
  if name in TRAINS:
    return given.get("task", TrainConfig().task)
  if name in ("demo", "tasks"):
    return words[0] if name == "demo" and words else given.get("describe", "")
  run = Path(given.get("checkpoint", words[0] if words else "."), "config.json")
  try:
    return given.get("task") or given.get("demo") or str(json.loads(run.read_text())["task"])
  except (OSError, ValueError, KeyError):
    return ""


def _values(key: str, leaf: Leaf | None) -> Iterable[str]:
  """Return the values of a setting, if they can be listed."""
  if key in ("task", "describe", "from"):
    return tasks.available()
  if key == "demo":
    return _demos()
  if leaf is None:
    return ()
  return ("true", "false") if leaf.kind is bool else getattr(leaf.kind, "__members__", ())


def _demos() -> list[str]:
  names: list[str] = declared.read("gpurobot.deploy.demos").names()
  return names


def _begin(start: str, words: Iterable[str]) -> list[str]:
  return [word for word in words if word.startswith(start)]


def main(argv: list[str]) -> None:
  """Print the shell's script, or the completions of the line in `argv`."""
  with until_unread():
    if {*HELP} & {*argv}:
      print(__doc__)
    elif not argv or argv == ["fish"]:
      print(FISH if argv else SCRIPT)
    else:
      print("\n".join(candidates(argv[0])))


if __name__ == "__main__":
  main(sys.argv[1:])
