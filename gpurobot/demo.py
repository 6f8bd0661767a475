"""Demo of a trained policy that comes with gpurobot: python -m gpurobot.demo [task] [key=value ...].

It plays the policy of a task, `ant` if none is named, as `python -m gpurobot.play demo=<task>` does.
"""

import sys

from gpurobot import play
from gpurobot.deploy import demos
from gpurobot.shell.programs import HELP

DEFAULT = "ant"


def main(argv: list[str]) -> None:
  """Play the demo that the first word of `argv` names, with the settings of `gpurobot.play`."""
  named = bool(argv) and "=" not in argv[0] and not argv[0].startswith("-")
  name, words = (argv[0], argv[1:]) if named else (DEFAULT, argv)
  if {*HELP} & {*words}:
    print(f"demos: {', '.join(demos.names())}; gpurobot demo <task> plays one, with these settings\n")
  play.main([f"demo={name}", *words])


if __name__ == "__main__":
  main(sys.argv[1:])
