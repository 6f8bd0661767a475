"""Entry point of `python -m gpurobot`, which is the command `gpurobot`."""

import sys

from gpurobot.shell.command import main

if __name__ == "__main__":
  sys.exit(main())
