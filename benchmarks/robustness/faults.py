"""Study of `gpurobot check`: python -m benchmarks.robustness.faults <run> [logs=3] [clean=30] [kind ...].

The policy of a run that does not observe the trunk's velocity, with its export in the folder `export`,
controls its robot in MuJoCo C in simulated time, with faults of each kind and with none. `name: value` lines
report how many logs named their fault first, the errors of latencies [ms], and how many clean logs
had a finding. Other words name the kinds of faults to study.
"""

import dataclasses
import json
from pathlib import Path

import numpy as np
import torch

from benchmarks.report import check_names, line, start
from benchmarks.robustness.faulty_robot import FAULTS, Network, Robot, Walk, network
from gpurobot.deploy.deployed import Deployed
from gpurobot.deploy.exported import Exported
from gpurobot.deploy.policy import Policy
from gpurobot.deploy.trained import read, read_policy
from gpurobot.diagnosis import log, servo, timing
from gpurobot.diagnosis.diagnose import diagnose
from gpurobot.diagnosis.finding import Finding
from gpurobot.settings.algorithms import Precision
from gpurobot.settings.config import ConfigError, algorithm_settings

SECONDS = 10.0  # of a log
LATE = ("sensor_latency", "actuator_latency")


class Study:
  """A policy, its robot, and logs of both."""

  def __init__(self, run: str) -> None:
    """Read a run and its export; raise ConfigError if either is missing."""
    self.export: Exported = log.read_policy(Path(run) / "export")
    config, _ = read(run)
    settings = dataclasses.replace(algorithm_settings(config), precision=Precision.float32)
    policy = Policy(read_policy(run)["learner"], settings, 1, torch.device("cpu"))
    self.networks: list[Network] = [network(Deployed(policy, None), normalised=own) for own in (True, False)]
    self.robot = Robot(str(Path(run) / "export" / "robot.xml"), self.export.facts)

  def findings(self, kind: str, seed: int) -> tuple[list[Finding], list[float]]:
    """Return the findings of a log, and the errors of its latencies [ms]: sensors, whole."""
    walk = Walk(self.robot, kind, seed)
    columns = walk.run(self.networks[kind == "normalisation"], SECONDS)
    joints = tuple(str(name) for name in columns.pop("robot.joints"))
    own = log.Log(json.loads(columns.pop("manifest")), joints, columns)
    found, _ = diagnose(own, self.export)
    age = float(np.mean(columns["time"] - columns["sensor_time"]))
    whole = age + walk.actuator_latency + float(np.mean(walk.waits))
    pairs = ((timing.sensor_age(own), age), (servo.latency(own), whole))
    return found, [1e3 * abs(guess - true) for guess, true in pairs if guess is not None]


def main(words: list[str]) -> None:
  """Study the policy of a run."""
  given = dict(word.split("=", 1) for word in words if "=" in word)
  run, *kinds = [word for word in words if "=" not in word] or [""]
  if not run or given.keys() - {"logs", "clean"}:
    raise ConfigError("write python -m benchmarks.robustness.faults <run> [logs=3] [clean=30] [kind ...]")
  check_names(kinds, FAULTS)
  torch.set_num_threads(1)
  study = Study(run)
  left = {"history_order"} if study.robot.length == 1 else set()
  shares, errors, logs = [], [], int(given.get("logs", 3))
  for kind in kinds or [kind for kind in FAULTS if kind not in left]:
    results = [study.findings(kind, seed) for seed in range(logs)]
    shares.append(np.mean([bool(found) and found[0].kind == kind for found, _ in results]))
    line(f"faults.named_first.{kind}", float(shares[-1]))
    for found, _ in results:
      if not found or found[0].kind != kind:
        print(f"# {kind} was named {', '.join(own.kind for own in found) or 'nothing'}")
    if kind in LATE:
      errors += [late for _, late in results]
  if shares:
    line("faults.named_first", float(np.mean(shares)))
  for name, each in zip(("sensors", "whole"), zip(*errors, strict=True), strict=False):
    line(f"faults.latency_error_ms.{name}", float(np.mean(each)))
    line(f"faults.latency_error_ms.{name}.largest", max(each))
  clean = [study.findings("", seed)[0] for seed in range(1000, 1000 + int(given.get("clean", 30)))]
  for own in (own for found in clean for own in found):
    print(f"# clean: {own.line}")
  line("faults.false_reports", float(np.mean([bool(found) for found in clean])))


if __name__ == "__main__":
  start(main)
