import itertools
from unittest import mock

import pytest

from benchmarks import report


def test_both_learn_and_are_compared(capfd):
  pytest.importorskip("stable_baselines3")
  from benchmarks.training import sac

  small = {"num_envs": 8, "sac.batch_size": 16, "sac.horizon": 2, "sac.learning_starts": 2}
  with (
    mock.patch.multiple(sac, NUM_ENVS=8, BATCH=16, STEPS=2, ROUNDS=1),
    mock.patch.dict(sac.SETTINGS, small),
  ):
    sac.run()
  out, errors = capfd.readouterr()
  assert "WARNING" not in errors  # MuJoCo's, once for each environment
  found = report.read(out)
  for name in (*sac.PRECISIONS, "stable_baselines3"):
    both, alone = (found[f"off_policy.{name}.{part}steps_per_second"] for part in ("", "collected_"))
    assert 0 < both < alone
    assert found[f"off_policy.{name}.gradient_steps_per_second"] > 0
  for part, suffix in itertools.product(
    ("collected_steps", "steps", "gradient_steps"), ("scalar", "scalar_float32")
  ):
    own, peer = (
      found[f"off_policy.{who}.{part}_per_second"] for who in (f"gpurobot_{suffix}", "stable_baselines3")
    )
    assert found[f"off_policy.{part}_{suffix}_ratio"] == pytest.approx(own / peer, rel=1e-2)
