"""Images per second, compared with MuJoCo's renderer: python -m benchmarks camera.

Each scene is that of a task, with a camera as its robot could have one. Both renderers draw the same states,
in turn, several times; the medians count. MuJoCo's renderer draws one state after the other, with EGL or
OSMesa, whichever is faster.
"""

import importlib
import statistics
import time
from collections.abc import Callable
from typing import NamedTuple

import mujoco
import torch
from mujoco.rendering.classic import gl_context

import physics
import tasks
from benchmarks.report import line
from gpurobot.config import defaults
from gpurobot.learn.random import Random
from gpurobot.viewer.offscreen import BACKENDS, draws

ENVS, ROUNDS, SECONDS = 256, 5, 0.5
SIZES = (32, 64, 128)
STATES = 16  # that MuJoCo's renderer draws: its speed hardly differs between states
KINDS = {"depth": ("depth",), "rgb": ("rgb",)}


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


def look_at(name: str) -> tuple[physics.Model, torch.Tensor]:
  """Return the model of a task's scene with the camera `eye`, and start states [ENVS, nq]."""
  module, place = tasks.load(name), SCENES[name]
  config = defaults(module).env
  task = module.Task(config, ENVS, random=Random(0, ENVS), training=False)
  task.reset()
  source = str(module.Task.scene(config))
  read = mujoco.MjSpec.from_string if source.lstrip().startswith("<") else mujoco.MjSpec.from_file
  spec = read(source)
  body = spec.worldbody if place.body == "world" else spec.body(place.body)
  body.add_camera(name="eye", pos=place.pos, xyaxes=place.xyaxes, fovy=60)
  return physics.load_model(spec, unsupported="warn"), task.sim.qpos.clone()


def rate(draw: Callable[[], object], images: int) -> float:
  """Return the images per second of a function that draws some, in at least SECONDS."""
  start, count = time.perf_counter(), 0
  while (spent := time.perf_counter() - start) < SECONDS:
    draw()
    count += images
  return count / spent


def ours(model: physics.Model, qpos: torch.Tensor, size: int, kinds: tuple[str, ...]) -> Callable[[], object]:
  """Return what draws all states at once."""
  simulation = physics.Simulation(model, len(qpos), outputs=())
  simulation.qpos.copy_(qpos)
  camera = physics.Camera(simulation, "eye", size, size, kinds)
  camera.render()
  return camera.render


def reference(
  model: physics.Model, qpos: torch.Tensor, size: int, kinds: tuple[str, ...]
) -> Callable[[], object]:
  """Return what draws the first states with MuJoCo's renderer, one by one."""
  states = []
  for row in qpos[:STATES].double().numpy():
    states.append(mujoco.MjData(model.mj))
    states[-1].qpos[:] = row
    mujoco.mj_forward(model.mj, states[-1])
  renderer = mujoco.Renderer(model.mj, size, size)
  if kinds == ("depth",):
    renderer.enable_depth_rendering()

  def draw() -> None:
    for data in states:
      renderer.update_scene(data, "eye")
      renderer.render()

  draw()
  return draw


def use(name: str) -> None:
  """Let MuJoCo's renderer draw by a backend."""
  gl_context.GLContext = importlib.import_module(f"mujoco.{name}").GLContext


def fastest(model: physics.Model, qpos: torch.Tensor) -> str:
  """Return MuJoCo's fastest backend here."""
  rates = {}
  for name in filter(draws, BACKENDS):
    use(name)
    rates[name] = rate(reference(model, qpos, 64, ("rgb",)), STATES)
  return max(rates, key=rates.__getitem__)


def run() -> None:
  """Measure and report."""
  for name in SCENES:
    model, qpos = look_at(name)
    use(fastest(model, qpos))
    for label, kinds in KINDS.items():
      makers = (ours(model, qpos, 64, kinds), reference(model, qpos, 64, kinds))
      rounds = [(rate(makers[0], ENVS), rate(makers[1], STATES)) for _ in range(ROUNDS)]
      here, there = (statistics.median(rates) for rates in zip(*rounds, strict=True))
      line(f"camera.{name}.{label}.images", here)
      line(f"camera.{name}.{label}.mujoco_images", there)
      line(f"camera.{name}.{label}.ratio", statistics.median(a / b for a, b in rounds))
    for size in SIZES:
      pixels = size * size
      line(f"camera.{name}.depth.pixels_{size}", pixels * rate(ours(model, qpos, size, ("depth",)), ENVS))


if __name__ == "__main__":
  run()
