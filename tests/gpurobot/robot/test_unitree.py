"""Unitree's messages have the published layout and checksum, and a robot in another process speaks them."""

import sys
import time
import uuid
from functools import partial

import numpy as np
import pytest

from gpurobot.robot import run, udp, unitree
from gpurobot.robot.interface import Command, Mode
from gpurobot.robot.unitree_messages import MOTORS, Link, _message, checksum, structures
from gpurobot.settings.config import ConfigError
from tests.mistakes.told import told

InvalidSample = pytest.importorskip(
  "cyclonedds.internal", reason="comes with the extra 'unitree'"
).InvalidSample

SIZES = {
  "unitree_go": {"LowState_": 1180, "LowCmd_": 812},
  "unitree_hg": {"LowState_": 2092, "LowCmd_": 1004},
}
CHECKSUMS = {"unitree_go": 0x5E968FCA, "unitree_hg": 0x947EDB32}  # Unitree's library says so of `a_command`


def a_command(record):
  """Fill a command."""
  motors = record["motor_cmd"]
  motors["mode"], motors["q"], motors["kp"], motors["kd"] = 1, 0.25 * np.arange(len(motors)), 20, 0.5
  if "head" in record.dtype.names:
    record["head"], record["level_flag"] = (0xFE, 0xEF), 0xFF
  else:
    record["mode_machine"] = 5
  return record


@pytest.mark.parametrize("package", SIZES)
def test_messages_have_the_published_layout_and_checksum(package):
  known = structures(package)
  assert {name: known[name].record.itemsize for name in SIZES[package]} == SIZES[package]
  assert known["LowCmd_"].message.__idl_typename__ == f"{package}.msg.dds_.LowCmd_"
  assert checksum(a_command(np.zeros((), known["LowCmd_"].record))) == CHECKSUMS[package]


@pytest.mark.parametrize(("writes", "reads"), [("LowState_", "LowCmd_"), ("LowCmd_", "LowState_")])
def test_a_wrong_checksum_is_refused(writes, reads, monkeypatch):
  link = Link("unitree_go", writes, reads, ("lo", 0, uuid.uuid4().hex))
  record = np.zeros((), structures("unitree_go")[reads].record)
  record["bandwidth"], record["wireless_remote"] = 7, range(40)
  for crc, taken in ((checksum(record), True), (checksum(record) ^ 1, False), (0, reads == "LowState_")):
    record["crc"] = crc
    encoded = _message(structures("unitree_go")[reads], record).serialize()
    message = link._known.message.deserialize(encoded)
    monkeypatch.setattr(link._reader, "take", lambda _, message=message: [message])
    found = link.newest()
    assert (found is not None) == taken
    assert not taken or found.tobytes() == record.tobytes()
  assert link.refused == (1 if reads == "LowState_" else 2)
  for nothing in ([], [InvalidSample(b"", None)]):  # the other one comes when the partner ends
    monkeypatch.setattr(link._reader, "take", lambda _, nothing=nothing: nothing)
    assert link.newest() is None
  link.close()


class Messages:
  """Stands for a `Link`: a robot's state, and the commands that it was sent."""

  def __init__(self, package, writes, reads, network):
    known = structures(package)
    self.written, self.state = np.zeros((), known[writes].record), np.zeros((), known[reads].record)
    self.sent, self.refused, self.network = [], 0, network

  def newest(self):
    return self.state

  def write(self):
    self.sent.append(self.written.copy())

  def close(self):
    self.closed = True


@pytest.mark.parametrize("model", unitree.Model)
def test_motors_are_mapped_by_name(model, monkeypatch):
  monkeypatch.setattr(unitree, "Link", Messages)
  names = MOTORS[unitree.PACKAGES[model]]
  wanted = [f"{names[2]}_joint", names[1]]
  robot = unitree.UnitreeRobot(unitree.Unitree(model=model), wanted, None)
  n, link = len(names), robot._link
  assert robot.joints == [*names[:2], f"{names[2]}_joint", *names[3:]]
  assert link.network == ("lo", 0, "")
  motors = link.state["motor_state"]
  motors["q"], motors["temperature"] = np.arange(len(motors)), 20
  motors["temperature"][3] = 70 if model is unitree.Model.go2 else (30, 70)  # a G1's case and winding
  link.state["tick"], link.state["imu_state"]["quaternion"] = 1500, (0.5, 0.5, -0.5, 0.5)
  if model is unitree.Model.g1:
    link.state["mode_machine"] = 5
  state = robot.read()
  assert (state.time, state.angles.tolist()) == (1.5, [*range(n)])
  assert state.temperatures.tolist() == [20, 20, 20, 70, *[20] * (n - 4)]
  assert state.quaternion.tolist() == [0.5, 0.5, -0.5, 0.5]
  assert robot.read() is state  # as old as it was: the robot's clock stands still
  link.state["tick"] = 0  # of a simulator without a clock
  assert 0 < robot.read().time < robot.read().time
  robot.write(Command(Mode.act, np.arange(n) + 1.0, np.full(n, 20.0), np.full(n, 0.5)))
  sent = link.sent[0]["motor_cmd"]
  assert sent["mode"].tolist() == [1] * n + [0] * (len(sent) - n)
  assert sent["q"][:n].tolist() == [*range(1, n + 1)]
  assert (sent["kp"][n - 1], sent["kd"][n - 1], sent["tau"].any(), sent["dq"].any()) == (
    20,
    0.5,
    False,
    False,
  )
  if model is unitree.Model.g1:
    assert (link.sent[0]["mode_machine"], link.sent[0]["mode_pr"]) == (5, 0)
  else:
    assert (link.sent[0]["head"].tolist(), link.sent[0]["level_flag"]) == ([0xFE, 0xEF], 0xFF)
  link.refused = 3
  assert robot.close() == "3 messages of the robot had a wrong checksum, and were ignored"
  assert link.closed


def test_a_policy_runs_over_the_loopback(standing, tmp_path, capsys):
  patient = ["safety.age=60", "safety.late=60", "safety.tilt=3.1", "connect_seconds=60", "start_seconds=0.2"]
  words = ["robot=unitree", "unitree.simulated=true", "seconds=0.5", "stop_seconds=0.1", *patient]
  run.main([str(standing), *words, f"log={tmp_path / 'log.npz'}"])
  printed = capsys.readouterr().out
  assert "the run ended: its time was over\n25 control steps of 20 ms" in printed
  assert "the simulated robot is " in printed
  log = np.load(tmp_path / "log.npz")
  assert (log["robot.temperatures"] == 30).all()
  assert log["robot.joints"].tolist() == MOTORS["unitree_go"]
  assert log["sensor_time"][-1] > log["sensor_time"][0] > 0


def test_a_g1_of_a_few_joints_obeys_over_the_loopback(tmp_path):
  """It is simulated until its knee is where the command wants it, however long that takes."""
  (tmp_path / "g1.xml").write_text("""<mujoco><worldbody><body pos="0 0 1"><freejoint/><geom size="0.1"/>
    <body><joint name="left_knee_joint" axis="0 1 0"/><geom size="0.05" pos="0 0 -0.2"/></body>
    </body></worldbody></mujoco>""")
  pose = {"home": {}, "root": [0, 0, 1, 1, 0, 0, 0], "start_seconds": 1e9}  # held for ever
  simulate = partial(udp.SimulatedProcess, udp.Simulation(start_angle=0.0), tmp_path / "g1.xml")
  settings = unitree.Unitree(model=unitree.Model.g1, simulated=True)
  robot = unitree.UnitreeRobot(
    settings, ["left_knee_joint"], lambda more: simulate({**pose, **more}, unitree.PROGRAM)
  )
  knee = robot.joints.index("left_knee_joint")
  targets = np.zeros(29)
  targets[knee] = 0.5
  end = time.perf_counter() + 60
  while (state := robot.read()) is None or abs(state.angles[knee] - 0.5) > 0.1:
    assert time.perf_counter() < end
    robot.write(Command(Mode.act, targets, np.full(29, 20.0), np.full(29, 1.0)))
    robot.wait(robot.now() + 0.01)
  assert state.gravity[2] < -0.99
  assert robot.close().startswith("the simulated robot is ")


def test_mistakes_are_told_in_a_line(standing, capsys, monkeypatch):
  dry, biped = "unitree.simulated=true", "sim.model=assets/biped/robot.xml"
  for words, text in (
    (["unitree.interface=none0"], "unitree.interface=none0: cyclonedds cannot open it"),
    (["unitree.model=g1"], "with the joint 'FR_hip', this one has left_hip_pitch, "),
    ([dry, "unitree.interface=eth0"], "unitree.interface=eth0: a simulated robot is on lo"),
    ([dry, "sim.realtime=false"], "sim.realtime=false: only robot=mujoco has simulated"),
    ([dry, biped], "it has no joint of this robot: FR_hip, "),
  ):
    assert text in told(capsys, run.main, [str(standing), "robot=unitree", *words])
  monkeypatch.setitem(sys.modules, "cyclonedds", None)
  with pytest.raises(ConfigError, match=r"cyclonedds is missing: pip install 'gpurobot\[unitree\]'"):
    structures("unitree_go")
