"""Policies of `gpurobot demo`: python -m benchmarks.learning.demos task ...

It trains each and keeps it in assets/demos. They are trained for as long as the first seed of their curve.
"""

import dataclasses
from collections.abc import Sequence

from benchmarks import cases
from benchmarks.learning import curves
from benchmarks.report import check_names, start
from gpurobot.deploy import demos
from gpurobot.run import checkpoint


def run(names: Sequence[str]) -> None:
  """Train and keep a policy of each named task."""
  known = {curve.task: curve for curve in cases.CURVES}
  check_names(names, known)
  for name in names:
    curve = dataclasses.replace(known[name], seeds=known[name].seeds[:1])
    (folder,) = curves.train(curve, [], curves.PPO)
    path = demos.write(checkpoint.read(folder))
    print(f"demo.{name}.bytes: {path.stat().st_size}")


if __name__ == "__main__":
  start(run)
