"""The message where the package of a suite is missing."""

import importlib.util

import pytest

from tasks.core.errors import TaskError
from tasks.shared import packaged


def test_without_the_package_one_line_says_what_to_install(monkeypatch):
  monkeypatch.setattr(importlib.util, "find_spec", lambda _name: None)
  with pytest.raises(TaskError, match=r"files of dm_control: pip install 'gpurobot\[dm\]'$"):
    packaged.folder("dm_control", "dm/*", "'gpurobot[dm]'")
