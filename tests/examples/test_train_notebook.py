import json
import re
import sys
from types import ModuleType

import matplotlib as mpl
import pytest

from tests.test_docs import PAGES, python_blocks
from tests.test_house import ROOT


def notebook() -> list[str]:
  """Return the programs of the notebook's cells."""
  cells = json.loads((ROOT / "examples/train.ipynb").read_text())["cells"]
  return ["".join(cell["source"]) for cell in cells if cell["cell_type"] == "code"]


PROGRAMS = {
  "notebook": notebook(),
  "page": python_blocks(next(text for path, text in PAGES.items() if path.name == "python.md")),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_the_steps_run_one_after_the_other(name, tmp_path, monkeypatch):
  """Each training takes two iterations here."""
  mpl.use("agg")
  monkeypatch.chdir(tmp_path)
  module = ModuleType("notebook")
  monkeypatch.setitem(sys.modules, module.__name__, module)  # where a class of the page is looked up
  names = vars(module)
  for program in PROGRAMS[name]:
    short = re.sub(r"max_seconds=(\d)0", r"max_iterations=\1", program)
    assert "max_seconds" not in short
    exec(short, names)
  assert names["run"].metrics["iteration"].tolist() in ([4], [2])
  assert names["envs"].num_envs == len(names["obs"])
