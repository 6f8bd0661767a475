from pathlib import Path

import pytest

from tests.test_docs import PAGES, python_blocks


def test_programs_of_the_page_run():
  for library in ("stable_baselines3", "torchrl"):
    pytest.importorskip(library, reason="comes with the extra 'libraries'")
  programs = python_blocks(PAGES[Path("docs/libraries.md")])
  assert len(programs) == 3
  names = {}
  for program in programs:
    exec(program, names)
