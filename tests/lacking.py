"""The end of a test on a machine that lacks what it needs."""

import os

import pytest


def lacking(reason):
  """Leave a test out where the machine lacks what it needs; with GPUROBOT_ALL_TESTS=1, as in CI, it fails."""
  (pytest.fail if os.environ.get("GPUROBOT_ALL_TESTS") else pytest.skip)(reason)
