import functools
import json

import numpy as np
import pytest
import torch

from benchmarks.robustness.faulty_robot import FAULTS, Robot, Walk, network
from gpurobot.deploy.deployed import Controls, Deployed
from gpurobot.deploy.exported import KEY
from gpurobot.diagnosis import log, servo, timing
from gpurobot.diagnosis.diagnose import diagnose
from tasks.base import ASSETS
from tests.gpurobot.deploy.test_manifest import facts
from tests.gpurobot.policies import make

HOME = [0.0, 0.9, -1.8] * 4
SECONDS, HISTORY = 4.0, 3


def random_policy():
  """Return a quadruped's policy that sways a little, whatever it sees."""
  policy = make({"policy": 47 * HISTORY, "critic": 9}, 12)
  torch.nn.init.normal_(policy.agent.network.head.output.weight, std=0.15)
  return policy


@pytest.fixture(scope="module")
def export(tmp_path_factory):
  """Return the folder of an exported policy of a quadruped, as far as a check needs it."""
  folder, controls = tmp_path_factory.mktemp("export"), Controls(torch.tensor(HOME), 0.5 * torch.eye(12))
  policy = random_policy()
  known = facts("quadruped", controls, policy, see_velocity=False, history_policy=HISTORY)
  deployed = Deployed(policy, controls)
  module = torch.jit.trace(deployed, tuple(deployed.inputs.values()))
  torch.jit.save(module, folder / "policy.pt", _extra_files={KEY: json.dumps(known)})
  return folder


@functools.cache
def walk(folder, kind="", seed=0, noise=1):
  """Return the columns of a log with a fault, and its walk, to be read alone.

  noise: of the speeds, over the training's.
  """
  exported = log.read_policy(folder)
  robot = Robot(str(ASSETS / "quadruped" / "robot.xml"), exported.facts)
  robot.settings["noise_speeds"] *= noise
  own = Walk(robot, kind, seed)
  deployed = Deployed(random_policy(), None)
  return own.run(network(deployed, normalised=kind != "normalisation"), SECONDS), own


def read(columns, folder):
  return log.Log(
    log.read_policy(folder).facts,
    tuple(columns["robot.joints"].tolist()),
    {name: value for name, value in columns.items() if name not in ("manifest", "robot.joints")},
  )


@pytest.mark.parametrize("seed", [0, 1])
@pytest.mark.parametrize("kind", FAULTS)
def test_a_fault_is_named_first(export, kind, seed):
  columns, _ = walk(export, kind, seed)
  found, _ = diagnose(read(columns, export), log.read_policy(export))
  assert [own.kind for own in found][:1] == [kind], [own.line for own in found]


@pytest.mark.parametrize("seed", [1, 5])  # beyond the controller, where torques alone tell
@pytest.mark.parametrize("kind", ["", "kd", "sign_in", "sign_out", "held"])
def test_noisy_speeds_hide_no_fault_of_servos(export, kind, seed):
  columns, _ = walk(export, kind, seed, noise=20)
  kinds = [own.kind for own in servo.check(read(columns, export)) if own.kind != "torque"]
  assert kinds == [kind] * bool(kind)


@pytest.mark.parametrize("seed", range(2))
def test_a_clean_log_has_no_finding(export, seed):
  columns, _ = walk(export, "", seed)
  found, missing = diagnose(read(columns, export), log.read_policy(export))
  assert {own.kind for own in found} <= {"torque"}  # a random policy does press against the limits
  assert missing == []


@pytest.mark.parametrize("kind", ["", "sensor_latency", "actuator_latency"])
def test_latencies_are_told_within_5_ms(export, kind):
  columns, own = walk(export, kind, 0)
  age = np.mean(columns["time"] - columns["sensor_time"])
  whole = age + own.actuator_latency + np.mean(own.waits)
  assert timing.sensor_age(read(columns, export)) == pytest.approx(age)
  assert servo.latency(read(columns, export)) == pytest.approx(whole, abs=0.005)


@pytest.mark.parametrize(
  ("kind", "seed", "kept"),
  [
    ("joints_in", 0, ("robot.angles", "sensor.angles", "robot.joints")),
    ("speed_order", 0, ("sensor.angles", "sensor.speeds")),
    ("gyro_frame", 1, ("robot.quaternion", "robot.gyro")),
    ("joints_out", 1, ("ctrl", "robot.angles", "robot.speeds", "robot.torques", "robot.joints")),
    ("normalisation", 0, ("obs", "action")),
    ("action_scale", 0, ("action", "ctrl")),
    ("rate", 0, ("time",)),
  ],
)
def test_some_keys_are_enough(export, kind, seed, kept):
  columns, _ = walk(export, kind, seed)
  joints = columns["robot.joints"]
  own = read({key: columns[key] for key in kept} | {"robot.joints": joints}, export)
  found, missing = diagnose(own, log.read_policy(export))
  assert found[0].kind == kind
  assert missing
  assert not [line for line in missing if "(no )" in line]
