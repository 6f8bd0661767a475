import sys

import pytest

from gpurobot import sweep
from gpurobot.search.launch import execute
from gpurobot.search.trial import Trial
from tests.gpurobot.search.trials import TOY

pytestmark = pytest.mark.usefixtures("keep_signal_handlers")


def test_an_interrupt_ends_the_runs_and_starts_no_more(tmp_path, monkeypatch):
  program = (
    "import os, signal, sys, time\n"
    "signal.signal(signal.SIGTERM, lambda *_: sys.exit())\n"
    "os.kill(os.getppid(), signal.SIGINT)\n"
    "time.sleep(600)\n"
  )
  monkeypatch.setattr(Trial, "command", lambda _: [sys.executable, "-c", program])
  _, runs = sweep.plan([*TOY, "seed=0,1", f"folder={tmp_path}"])
  said = []
  assert not execute(runs, 1, said.append)
  assert said == ["seed=0: interrupted"]
  assert not runs[1].folder.exists()
