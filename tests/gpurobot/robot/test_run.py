"""A policy runs on a robot in another process: in simulated time, and once in real time."""

import os
import pty
import re
import shutil
import signal
import sys

import numpy as np
import pytest

from gpurobot.robot import keyboard, run, udp
from tests.mistakes.told import told

QUICK = ["sim.realtime=false", "start_seconds=0.5", "seconds=2", "stop_seconds=0.1", "command=[0.5,0,0]"]


def test_it_stands_with_loss_noise_delay_and_friction(standing, tmp_path, capsys):
  log = tmp_path / "log.npz"
  defects = ["sim.loss=0.3", "sim.noise=2", "sim.delay=0.01", "sim.friction=0.2", "sim.torque=0.8"]
  run.main([str(standing), *QUICK, *defects, f"log={log}"])
  printed = capsys.readouterr().out.splitlines()
  assert printed[0] == "the run ended: its time was over"
  assert printed[1].startswith("100 control steps of 20 ms, late by 0.00 ms in the mean")
  assert printed[2].startswith("the simulated robot is ")
  assert printed[3] == f"{log}: the log"
  found = np.load(log)
  assert (found["sensor.gravity"][:, 2] < -0.9).all()
  assert (found["sensor.command"] == [0.5, 0, 0]).all()
  age = found["time"] - found["sensor_time"]
  assert age.min() > 0.0099
  assert 0.012 < age.max() < 0.05  # some of the messages are lost
  assert abs(found["robot.angles"] - found["ctrl"]).max() < 0.45  # in another order, by at least 0.9 at home


def test_simulated_time_repeats_itself(standing, tmp_path):
  logs = [tmp_path / f"{name}.npz" for name in "ab"]
  for log in logs:
    run.main([str(standing), *QUICK, "sim.loss=0.2", "seconds=0.5", f"log={log}"])
  first, second = map(np.load, logs)
  np.testing.assert_array_equal(first["robot.angles"], second["robot.angles"])


def test_a_robot_that_falls_ends_the_run_with_a_status(standing, capsys):
  with pytest.raises(SystemExit) as end:
    run.main([str(standing), *QUICK, "sim.torque=0.05", "safety.tilt=0.02", "sim.noise=0"])
  assert end.value.code == 1
  assert "the run ended: the trunk is tilted by 0.0" in capsys.readouterr().out
  assert len(list((standing / "logs").glob("*.npz"))) == 1


def test_it_runs_in_real_time(standing, tmp_path, capsys):
  log, patient = tmp_path / "log.npz", ["safety.age=60", "safety.late=60", "connect_seconds=60"]
  words = [*QUICK, "sim.realtime=true", "seconds=0.5", "start_seconds=0.1", *patient]
  run.main([str(standing), *words, f"log={log}"])
  assert "25 control steps of 20 ms" in capsys.readouterr().out
  found = np.load(log)
  assert (np.diff(found["time"]) > 0).all()
  assert found["time"][-1] - found["time"][0] > 0.4
  assert (np.diff(found["sensor_time"]) >= 0).all()
  assert found["sensor_time"][-1] > found["sensor_time"][0]


def test_the_robots_own_file_may_be_a_urdf(tmp_path):
  (tmp_path / "robot.urdf").write_text("""<robot name="r"><link name="a"><inertial><mass value="1"/>
    <inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/></inertial></link></robot>""")
  robot = udp.UdpRobot(
    udp.Simulation(realtime=False), tmp_path / "robot.urdf", {"home": {}, "root": [0, 0, 1, 1, 0, 0, 0]}
  )
  robot.wait(0.1)
  assert os.getpgid(robot._process.popen.pid) != os.getpgid(0)  # Ctrl-C does not reach it
  assert robot.joints == []
  assert robot.read().time == pytest.approx(0.098)
  assert robot.close().startswith("the simulated robot is 0.00 m ahead")


def test_a_robot_whose_process_ends_is_told_of(standing, monkeypatch):
  monkeypatch.setattr(udp, "PATIENCE", 0.05)
  settings = udp.Simulation(realtime=False)
  robot = udp.UdpRobot(settings, standing / "robot.xml", {"home": {}, "root": [0, 0, 1, 1, 0, 0, 0]})
  robot._process.popen.kill()
  robot._process.popen.wait()
  with pytest.raises(ConnectionError, match="does not answer"):
    robot.wait(1.0)
  assert robot.close() == ""


@pytest.mark.parametrize("kind", [signal.SIGSTOP, signal.SIGKILL])
def test_a_robot_that_falls_silent_ends_the_run(kind, standing, tmp_path, monkeypatch, capsys):
  """Its process is stopped, which does not even end by itself, or dies while the policy acts in real time."""
  robots = []

  def connect(*given):
    robots.append(original(*given))
    return robots[0]

  def act(controller, *given):
    if controller._ticks == 10:
      os.kill(robots[0]._process.popen.pid, kind)
    return step(controller, *given)

  original, step = run.connect, run.Controller.step
  monkeypatch.setattr(run, "connect", connect)
  monkeypatch.setattr(run.Controller, "step", act)
  patient = ["sim.realtime=true", "connect_seconds=60", "safety.late=60", "safety.age=2", "seconds=null"]
  with pytest.raises(SystemExit) as end:
    run.main([str(standing), *QUICK, *patient, f"log={tmp_path / 'log.npz'}"])
  assert end.value.code == 1
  assert re.search(r"its newest message is 2\.\d+ s old, more than safety.age=2", capsys.readouterr().out)
  assert len(np.load(tmp_path / "log.npz")["time"]) > 80


def test_mistakes_are_told_in_a_line(standing, tmp_path, capsys):
  fixed, run_folder, trained = (tmp_path / name for name in ("arm.xml", "run", "trained"))
  other = run_folder / "export"
  trained.mkdir()
  (trained / "checkpoint.pt").touch()
  fixed.write_text("<mujoco><worldbody><geom size='1'/></worldbody></mujoco>")
  shutil.copytree(standing, other)
  (other / "robot.xml").unlink()
  for words, text in (
    ([], "export=<folder> is missing"),
    ([str(tmp_path)], "has no policy.pt: name a folder that gpurobot export has written"),
    ([str(run_folder)], f"has no policy.pt: name the export in it, {other}"),
    ([str(trained)], f"has no policy.pt: write gpurobot export {trained} first"),
    ([str(standing), "command=[1]"], "has 1 numbers, not 3: forward, "),
    ([str(standing), "command=[2,0,0]"], "command=[2.0, 0.0, 0.0]: forward is from -1 to 1 in the training"),
    ([str(standing), "log=log.csv"], "log=log.csv: the log is a file with the ending .npz"),
    ([str(standing), f"sim.model={fixed}"], f"sim.model={fixed}: no free joint"),
    ([str(standing), "sim.model=assets/biped/robot.xml", *QUICK], "with the joint 'FR_hip', this one has "),
    ([str(other)], f"there is no robot file '{other / 'robot.xml'}'"),
    ([str(standing), *QUICK, "sim.loss=1"], "the robot sends no message in 5 s"),
  ):
    assert text in told(capsys, run.main, words)


def test_keys_of_a_terminal_come_at_once(monkeypatch):
  master, slave = pty.openpty()
  with os.fdopen(slave) as terminal:
    monkeypatch.setattr(sys, "stdin", terminal)
    with keyboard.listening() as keys:
      assert keys
      assert keyboard.pressed() == ""
      os.write(master, b"wx")
      assert keyboard.pressed() == "wx"
  os.close(master)
  with open(os.devnull) as nothing:  # noqa: PTH123
    monkeypatch.setattr(sys, "stdin", nothing)
    with keyboard.listening() as keys:
      assert not keys
