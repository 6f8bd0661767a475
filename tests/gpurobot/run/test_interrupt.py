import signal
import time

import pytest

from gpurobot.run.interrupt import Interrupt


@pytest.mark.usefixtures("keep_signal_handlers")
def test_the_first_signal_asks_and_one_a_second_later_ends(monkeypatch):
  monkeypatch.setattr(time, "monotonic", lambda: 5.0)
  for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT):
    signal.signal(signal.SIGHUP, signal.SIG_DFL)
    interrupt = Interrupt()
    assert (interrupt.requested, interrupt.status) == (False, 0)
    signal.raise_signal(number)
    assert (interrupt.requested, interrupt.status) == (True, 128 + number)
  signal.raise_signal(signal.SIGINT)  # passed on by torchrun
  monkeypatch.setattr(time, "monotonic", lambda: 6.0)
  with pytest.raises(KeyboardInterrupt):
    signal.raise_signal(signal.SIGINT)


@pytest.mark.usefixtures("keep_signal_handlers")
def test_under_nohup_the_end_of_the_terminal_is_ignored():
  signal.signal(signal.SIGHUP, signal.SIG_IGN)
  interrupt = Interrupt()
  signal.raise_signal(signal.SIGHUP)
  assert not interrupt.requested
