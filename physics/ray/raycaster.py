"""Lidars and height scans: many rays from one body, cast in all environments by a separate kernel."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Protocol

import numpy as np
import torch

from physics.algebra.spatial import AXES, Matrix, Vector
from physics.dynamics.kinematics import Poses
from physics.model.model import Floats, Model
from physics.ray.scene import Scene, visible_geoms
from physics.state.layout import Layout
from physics.trace.trace import Program, maximum, sqrt
from physics.vary.posed import trace_poses
from physics.vary.vary import Variation

RayFrame = Literal["body", "yaw", "world"]


@dataclass(frozen=True, eq=False)
class Rays:
  """Rays from a body: their origins and directions, and the geoms that they can meet.

  Rays turn with the body in frame "body", with its heading about the world's z in frame "yaw", and not at all
  in frame "world".
  """

  body: int
  frame: RayFrame
  origins: Floats  # [n, 3] from the body's position, along the frame's axes [m]
  directions: Floats  # [n, 3] of any length, along the frame's axes
  geoms: Sequence[int]

  def turn(self, p: Poses) -> Matrix:
    """Return the frame's axes in the world."""
    if self.frame == "world":
      return Matrix(*AXES)
    if self.frame == "body":
      return p.rotation[self.body]
    x, y, _ = p.rotation[self.body].column(0)
    scale = 1.0 / sqrt(maximum(x * x + y * y, 1e-12))
    x, y = x * scale, y * scale
    return Matrix(Vector(x, -y, 0.0), Vector(y, x, 0.0), AXES[2])


def trace_rays(model: Model, layout: Layout, rays: Rays, variation: Variation | None = None) -> Program:
  """Trace the casting of rays in one program, with the parameters and arrays of `step.trace_step`.

  It reads the state and writes distances to the rows of `control`: in lengths of the directions, -1
  where a ray meets nothing.
  """
  program, model, p = trace_poses(model, layout, variation)
  scene = Scene(program, model, p, rays.geoms, p.origin[rays.body])
  turn = rays.turn(p)
  with program.loop(len(rays.origins)) as i:
    origin, direction = (
      turn @ Vector(*(program.table(column, i) for column in table.T.tolist()))
      for table in (rays.origins, rays.directions)
    )
    program.write_memory("control", i, scene.distance(p.position[rays.body] + origin, direction))
  return program.finish()


class Casting(Protocol):
  """A simulation in which rays can be cast."""

  model: Any

  def attach_rays(self, rays: Rays) -> tuple[Callable[[], None], torch.Tensor]:
    """Return a function that casts rays in the present state, and the [num_envs, num_rays] it writes."""


class RayCaster:
  """A caster of rays in every environment of a simulation, by the rules of MuJoCo's `mj_ray`.

  Args:
    simulation: the rays are cast in its present state.
    body: name of the body that the rays start from; "world" stands still.
    origins: [num_rays, 3] from the body's position [m].
    directions: [num_rays, 3], or [3] for all.
    frame: the axes that these follow: "body", "yaw" (the body's heading about the world's z) or "world".
    geoms: what rays can meet, see `visible_geoms`; None: every visible geom of another body.
  """

  distance: torch.Tensor  # [num_envs, num_rays] in lengths of the directions, -1: it meets nothing

  def __init__(
    self,
    simulation: Casting,
    body: str,
    origins: Sequence[Sequence[float]] | Floats,
    directions: Sequence[Sequence[float]] | Sequence[float] | Floats,
    frame: RayFrame = "body",
    geoms: Sequence[int] | None = None,
  ) -> None:
    model, index = simulation.model, simulation.model.body_id(body)
    starts = np.array(origins, float)
    ways = np.broadcast_to(np.array(directions, float), starts.shape)
    geoms = visible_geoms(model, exclude=index) if geoms is None else geoms
    self._launch, self.distance = simulation.attach_rays(Rays(index, frame, starts, ways, geoms))

  def cast(self) -> torch.Tensor:
    """Cast the rays in the present state; return `distance` [num_envs, num_rays].

    The next cast overwrites it.
    """
    self._launch()
    return self.distance
