"""Check of a robot's log: python -m gpurobot.check log.npz policy=<export folder> [key=value ...].

It compares the log of a deployed controller with the export of its policy, and says what differs from the
training, the worst first, with evidence and mend.
"""

import dataclasses
import sys
from pathlib import Path

from gpurobot.diagnosis import log, servo, timing
from gpurobot.diagnosis.diagnose import diagnose
from gpurobot.settings.config import ConfigError, option
from gpurobot.shell import cli

PROGRAM = "python -m gpurobot.check"


@dataclasses.dataclass
class Check:
  """Check of a robot's log against the export of its policy."""

  log: str | None = option(None, "log of the controller, .npz or .csv")
  policy: str | None = option(None, "folder of the exported policy")
  reference: str | None = option(None, "log to compare with, as of the same policy in simulation; null: none")
  columns: str | None = option(
    None, "JSON or TOML file with the log's name of a column, or a list of these, for each of our keys"
  )
  debug: bool = option(False, "show the traceback of an error")


def check(settings: Check) -> None:
  """Print what differs; raise ConfigError if log or export cannot be used."""
  if settings.log is None or settings.policy is None:
    raise ConfigError(f"log and policy are needed: write {PROGRAM} <log> policy=<export folder>")
  policy = log.read_policy(Path(settings.policy))
  mapping = Path(settings.columns) if settings.columns else None
  own = log.read(Path(settings.log), policy.facts, mapping)
  findings, missing = diagnose(own, policy)
  if settings.reference:
    other = log.read(Path(settings.reference), policy.facts, mapping)
    known = {finding.kind for finding in diagnose(other, policy)[0]}
    findings.sort(key=lambda finding: finding.kind in known)
  else:
    known = set()
  for place, finding in enumerate(findings, 1):
    print(f"{place}. {finding.line}" + (" (so does the reference)" if finding.kind in known else ""))
  if not findings:
    print("nothing differs from the training")
  print(_times(own))
  for name in missing:
    print(f"not tested: {name}")


def _times(own: log.Log) -> str:
  """Return a line about the log's control steps and latencies."""
  words = [f"{len(next(iter(own.columns.values())))} control steps of {1e3 * timing.step(own):.4g} ms"]
  found = {"age of the sensors": timing.sensor_age(own), "from sensors to torques": servo.latency(own)}
  words += [f"{name} {1e3 * seconds:.1f} ms" for name, seconds in found.items() if seconds is not None]
  return ", ".join(words)


def main(argv: list[str]) -> None:
  """Check the log that `argv` names; a word may be the file alone."""
  cli.start(Check(), PROGRAM, argv, check, named="log")


if __name__ == "__main__":
  main(sys.argv[1:])
