import os
import subprocess
import sys

import pytest

from tests.test_house import ROOT

SCRIPT = "import sys; from gpurobot.shell.command import main; sys.exit(main())"
INTERRUPT = """
import signal, sys
class Finder:
  @staticmethod
  def find_spec(name, path=None, target=None):
    if name == {name!r}:
      signal.raise_signal(signal.SIGINT)
sys.meta_path.insert(0, Finder)
"""


STARTS = (["gpurobot", "train"], ["-m", "gpurobot", "describe"], [f"{ROOT}/train.py"])


@pytest.mark.parametrize(("start", "module"), zip(STARTS, ("omegaconf", "torch.nn", "warp"), strict=True))
def test_ctrl_c_while_a_program_imports_ends_it_silently(start, module, tmp_path):
  (tmp_path / "gpurobot").write_text(SCRIPT)
  (tmp_path / "sitecustomize.py").write_text(INTERRUPT.format(name=module))
  environment = os.environ | {"PYTHONPATH": f"{tmp_path}{os.pathsep}{ROOT}"}
  command = [sys.executable, *start, "task=cartpole"]
  done = subprocess.run(command, cwd=tmp_path, env=environment, check=False, capture_output=True, text=True)
  assert (done.returncode, done.stdout, done.stderr) == (130, "", "")


def test_a_users_program_keeps_its_ctrl_c_and_its_environment():
  """Only programs of gpurobot's change them as they are imported."""
  state = "(dict(os.environ), signal.getsignal(2), list(sys.path))"
  code = f"import os, signal, sys; old = {state}; import gpurobot; print(old == {state})"
  environment = os.environ | {"GOMP_SPINCOUNT": "1"}
  assert subprocess.check_output([sys.executable, "-c", code], env=environment, text=True) == "True\n"
