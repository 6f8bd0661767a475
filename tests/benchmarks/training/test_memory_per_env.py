from benchmarks import report
from benchmarks.training import memory_per_env


def test_memory_of_an_environment_is_that_of_its_tensors(capsys):
  memory_per_env.run(["tasks=[cartpole]", "device=cpu"])
  found = report.read(capsys.readouterr().out)
  assert found["environments.cartpole.simulation_bytes"] < found["environments.cartpole.bytes"]
  assert found["environments.cartpole.per_gb"] == float(f"{1e9 / found['environments.cartpole.bytes']:.0f}")
