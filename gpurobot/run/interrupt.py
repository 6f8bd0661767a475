"""Signals that stop training."""

import signal
import threading
import time
from types import FrameType

# Windows has but the first two, and of a reader that left no signal: it has the number of other systems.
STOPPING = [getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name)]
HANGUP, UNREAD = getattr(signal, "SIGHUP", None), getattr(signal, "SIGPIPE", 13)


class Interrupt:
  """Record of a stop request by Ctrl-C, SIGTERM or a closed terminal (SIGHUP, which nohup ignores).

  A second Ctrl-C ends the program at once if it comes a second or more after the first. An earlier one is
  ignored, as torchrun repeats the signal that the terminal has already sent to all. A training that runs in a
  thread of another program leaves the signals to that program.
  """

  def __init__(self) -> None:
    self.requested = False
    self.status = 0  # exit status, by convention 128 + the signal's number
    self._since = 0.0  # time of the first request [s]
    if threading.current_thread() is not threading.main_thread():
      return  # Python lets no other thread handle signals
    for number in STOPPING:
      if number != HANGUP or signal.getsignal(number) != signal.SIG_IGN:
        signal.signal(number, self.request)

  def request(self, number: int, _frame: FrameType | None = None) -> None:
    """Note the request of a signal; raise KeyboardInterrupt at the second Ctrl-C."""
    now = time.monotonic()
    if not self.requested:
      self.requested, self.status, self._since = True, 128 + number, now
    elif number == signal.SIGINT and now - self._since >= 1:
      raise KeyboardInterrupt
