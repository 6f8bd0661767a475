from unittest import mock

from benchmarks import report
from benchmarks.training import iteration


def test_shares_of_an_iteration_add_up(capsys):
  with mock.patch.multiple(iteration, WARM_UP=1, MEASURED=2):
    iteration.run(["task=cartpole", "num_envs=32", "ppo.horizon=4", "ppo.minibatches=1", "ppo.epochs=2"])
  found = report.read(capsys.readouterr().out)
  parts = [part for part in found if part.endswith("_share") and part != "iteration.overhead_share"]
  assert {"iteration.physics_share", "iteration.network_share", "iteration.update_share"} < set(parts)
  assert abs(sum(found[part] for part in parts) - 1) < 1e-3
  assert 0 < found["iteration.overhead_share"] < 1
  assert found["iteration.steps_per_second"] > 0
