"""All tests of a log, and their findings, the worst first."""

from collections.abc import Callable, Iterator

from gpurobot.deploy.exported import Exported
from gpurobot.diagnosis import motion, replay, servo, timing
from gpurobot.diagnosis.finding import Finding, ranked
from gpurobot.diagnosis.log import Log

Test = Callable[[Log], Iterator[Finding]]
JOINTS = ("robot.angles", "robot.speeds", "robot.torques")


MESSAGE = ("robot.angles", "sensor.angles")
SERVOS = ("torques from commands", "latency")
MESSAGES = {"degrees", "speed_unit", "speed_order"}  # findings that make torques useless


def diagnose(log: Log, policy: Exported) -> tuple[list[Finding], list[str]]:
  """Return what differs from the training, the worst first, and the tests that the log does not allow."""
  sensors = tuple(f"sensor.{sensor['name']}" for sensor in log.facts["sensors"])
  tests: dict[str, tuple[Test, tuple[tuple[str, ...], ...]]] = {
    "sensors from messages": (replay.messages, (MESSAGE, ("robot.quaternion", "sensor.gravity"))),
    "observation from sensors": (replay.observations, (("obs", *sensors),)),
    "actions from observations": (lambda own: replay.actions(own, policy), (("action", "obs"),)),
    "commands from actions": (replay.commands, (("ctrl", "action"),)),
    "speeds from angles": (motion.speeds, (JOINTS[:2], ("sensor.angles", "sensor.speeds"))),
    "gyro from attitude": (motion.attitude, (("robot.quaternion", "robot.gyro"),)),
    "torques from commands": (servo.check, (("ctrl", *JOINTS),)),
    "latency": (servo.late, (("ctrl", *JOINTS), ("time", "sensor_time"))),
    "clocks": (timing.clocks, (("time",), ("sensor_time",))),
  }
  found: list[Finding] = []
  missing = []
  for name, (test, needs) in tests.items():
    if name in SERVOS and {own.kind for own in found} & MESSAGES:
      missing.append(f"{name} (the messages have to be right first)")
    elif name in SERVOS and servo.still(log):
      missing.append(f"{name} (the targets hardly move)")
    elif any(log.has(*keys) for keys in needs):
      found += test(log)
    else:
      lacking = [key for key in needs[0] if not log.has(key)]
      missing.append(f"{name} (no {', '.join(lacking)})")
  return ranked(found), missing
