"""Images per second, compared with MuJoCo's renderer: python -m benchmarks cameras.rendering.

Each scene is a task's, with a camera as its robot could have one. Both renderers draw the same states,
in turn, several times; the medians count. MuJoCo's renderer draws one state after the other, with EGL or
OSMesa, whichever is faster. `core_` figures are by the processor time of the process: they hardly
depend on other programs.
"""

import importlib
import statistics
import time
from collections.abc import Callable
from typing import Any, NamedTuple

import mujoco
import torch

import physics
import tasks
from benchmarks.report import line
from gpurobot.learn.random import Random
from gpurobot.settings.config import defaults
from gpurobot.viewer.offscreen import BACKENDS, draws
from physics.load import read_spec

ENVS, ROUNDS, SECONDS = 256, 3, 0.5
SIZE = 64  # of an image [pixels]
STATES = 4  # fewest states per round of MuJoCo's renderer: some take it a second
KINDS = ("depth", "rgb")


class Place(NamedTuple):
  """Where the camera of a scene is: a body, and MJCF's pos and xyaxes in it."""

  body: str
  pos: tuple[float, ...]
  xyaxes: tuple[float, ...]


SCENES = {
  "quadruped_rough": Place("trunk", (0.3, 0, 0.1), (0, -1, 0, 0.35, 0, 1)),
  "cube_lift": Place("world", (1.4, 0, 1.0), (0, 1, 0, -0.6, 0, 1)),
  "humanoid": Place("world", (3.0, 0, 1.3), (0, 1, 0, -0.1, 0, 1)),
}


def load_scene(name: str) -> tuple[physics.Model, torch.Tensor]:
  """Return the model of a task's scene with the camera `eye`, and start states [ENVS, nq]."""
  module, place = tasks.load(name), SCENES[name]
  config = defaults(module).env
  task = module.Task(config, ENVS, random=Random(0, ENVS), training=False)
  task.reset()
  spec = read_spec(module.Task.scene(config))
  body = spec.worldbody if place.body == "world" else spec.body(place.body)
  body.add_camera(name="eye", pos=place.pos, xyaxes=place.xyaxes, fovy=60)
  return physics.load_model(spec, unsupported="warn"), task.sim.qpos.clone()


def rate(draw: Callable[[], object], images: int) -> tuple[float, float]:
  """Return the images per second, and per second of a core, of a function that draws some."""
  start, used, count = time.perf_counter(), time.process_time(), 0
  while time.perf_counter() - start < SECONDS:
    draw()
    count += images
  return count / (time.perf_counter() - start), count / (time.process_time() - used)


def ours(model: physics.Model, qpos: torch.Tensor, kind: str) -> Callable[[], object]:
  """Return a function that draws all states at once."""
  simulation = physics.Simulation(model, len(qpos), outputs=())
  simulation.qpos.copy_(qpos)
  camera = physics.Camera(simulation, "eye", SIZE, SIZE, (kind,))
  camera.render()
  return camera.render


def reference(model: physics.Model, qpos: torch.Tensor, kind: str) -> Callable[[], object]:
  """Return a function that draws the first states with MuJoCo's renderer, one by one."""
  states = []
  for row in qpos[:STATES].double().numpy():
    states.append(mujoco.MjData(model.mj))
    states[-1].qpos[:] = row
    mujoco.mj_forward(model.mj, states[-1])
  renderer = mujoco.Renderer(model.mj, SIZE, SIZE)
  if kind == "depth":
    renderer.enable_depth_rendering()

  def draw() -> None:
    for data in states:
      renderer.update_scene(data, "eye")
      renderer.render()

  draw()
  return draw


def use(name: str) -> None:
  """Set the backend of MuJoCo's renderer."""
  context: Any = importlib.import_module("mujoco.rendering.classic.gl_context")
  context.GLContext = importlib.import_module(f"mujoco.{name}").GLContext


def fastest(model: physics.Model, qpos: torch.Tensor) -> str:
  """Return MuJoCo's fastest backend here."""
  rates = {}
  for name in filter(draws, BACKENDS):
    use(name)
    rates[name] = rate(reference(model, qpos, "depth"), STATES)[0]
  return max(rates, key=rates.__getitem__)


def compare(name: str, model: physics.Model, qpos: torch.Tensor, kind: str) -> None:
  """Report the images per second of both renderers."""
  here, there = ours(model, qpos, kind), reference(model, qpos, kind)
  rounds = [(*rate(here, ENVS), *rate(there, STATES)) for _ in range(ROUNDS)]
  columns = [statistics.median(column) for column in zip(*rounds, strict=True)]
  names = ("images", "core_images", "mujoco_images", "mujoco_core_images")
  for column, value in zip(names, columns, strict=True):
    line(f"camera.{name}_{kind}.{column}", value)
  line(f"camera.{name}_{kind}.ratio", columns[0] / columns[2])
  line(f"camera.{name}_{kind}.core_ratio", columns[1] / columns[3])


def run() -> None:
  """Measure and report."""
  scenes = {name: load_scene(name) for name in SCENES}
  use(fastest(*scenes["humanoid"]))
  for name in SCENES:
    for kind in KINDS:
      compare(name, *scenes[name], kind)
