"""Start of the simulated robot of an export and of the C++ controller that `CMakeLists.txt` builds for it.

`cmake -S examples/cpp_robot -B build -DEXPORT=$PWD/<export folder> && cmake --build build`, then
`python examples/cpp_robot/run.py <export folder> build/robot`.
"""

import json
import subprocess
from argparse import ArgumentParser
from pathlib import Path

from gpurobot.robot.udp import SimulatedProcess, Simulation

COMMAND = ("0.5", "0", "0")  # ahead, to the left [m/s], turning to the left [rad/s]


def run(export: Path, program: Path, seconds: float, simulation: Simulation) -> tuple[int, str]:
  """Return the program's exit status, and a line about the robot's way."""
  facts = json.loads((export / "policy.json").read_text())
  pose = facts["key_frames"]["home"]["qpos"]
  free = next(joint["qpos"] for joint in facts["joints"] if joint["type"] == "free")
  home = {joint["name"]: joint["home"] for joint in facts["joints"] if "home" in joint}
  robot = SimulatedProcess(simulation, export / "robot.xml", {"home": home, "root": pose[free : free + 7]})
  try:
    words = [robot.answer["port"], seconds, *COMMAND, *robot.answer["joints"]]
    status = subprocess.run([program, *map(str, words)], check=False).returncode
  finally:
    way = robot.close()
  return status, way


if __name__ == "__main__":
  parser = ArgumentParser(description="Let an exported policy walk by a C++ program.")
  parser.add_argument("export", type=Path, help="folder that gpurobot export has written")
  parser.add_argument("program", type=Path, help="robot that cmake has built")
  given = parser.parse_args()
  ended, line = run(given.export, given.program.resolve(), 10.0, Simulation())
  print(line)
  raise SystemExit(ended)
