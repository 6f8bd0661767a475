"""Signals that ask a training to end."""

import signal
import time
from types import FrameType


class Interrupt:
  """Remembers that Ctrl-C, SIGTERM or the end of the terminal (SIGHUP, which nohup ignores) asked for an end.

  A second Ctrl-C ends the program at once if it comes a second or more after the first. One that comes sooner
  counts as the first: torchrun passes on what the terminal has sent to all.
  """

  def __init__(self) -> None:
    self.requested = False
    self.status = 0  # with which to leave: by custom 128 + the signal's number
    self._since = 0.0  # the first request [s]
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
      if number != signal.SIGHUP or signal.getsignal(number) != signal.SIG_IGN:
        signal.signal(number, self._request)

  def _request(self, number: int, _frame: FrameType | None) -> None:
    now = time.monotonic()
    if not self.requested:
      self.requested, self.status, self._since = True, 128 + number, now
    elif number == signal.SIGINT and now - self._since >= 1:
      raise KeyboardInterrupt
