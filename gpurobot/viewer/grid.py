"""Grid on which the page sets the environments apart, when it shows the others beside the selected one."""

import math

import mujoco
import numpy as np
import viser
from mjviser.conversions import group_geoms_by_visual_compat, is_fixed_body, merge_geoms
from mujoco import mjtGeom
from numpy.typing import NDArray

from gpurobot.viewer.framing import GROUND, HIDDEN, corners, subject
from gpurobot.viewer.task_scene import TaskScene

ROOM = 1.3  # distance between neighbours, as a multiple of their size
APART = 3.0  # the same for robots that roam, which meet each other later
LEAST = 1.0  # smallest distance, as a multiple of their height: an arm turns


def cells(count: int, pitch: NDArray[np.float64]) -> NDArray[np.float64]:
  """Return the places [count, 3] of a grid about as long as wide, for cells of the size `pitch` [2] [m]."""
  columns = min(count, math.ceil(math.sqrt(count * pitch[1] / pitch[0])))
  rows, column = np.divmod(np.arange(count), columns)
  return np.stack([column * pitch[0], rows * pitch[1], np.zeros(count)], axis=1)


class Grid:
  """Places of the environments of a rendered scene; fixed bodies are copied to each.

  The selected environment stays where it is simulated. On a height field all do: they share the terrain.
  """

  def __init__(self, server: viser.ViserServer, rendered: TaskScene) -> None:
    """Add the copies to the page, hidden. The kinematics of `rendered` have to be known."""
    model, count = rendered.model, rendered.task.num_envs
    fixed = np.array([is_fixed_body(model, int(body)) for body in model.geom_bodyid])
    fixed &= ~np.isin(model.geom_type, GROUND) & (model.geom_group < HIDDEN) & (model.geom_rgba[:, 3] > 0)
    self._copies: list[tuple[viser.BatchedGlbHandle, NDArray[np.float64]]] = []  # with their place [3]
    self._cells = np.zeros((count, 3))
    self._shown = (False, 0)
    if count == 1 or (model.geom_type == mjtGeom.mjGEOM_HFIELD).any():
      return
    shown = subject(model, rendered.robot) | (fixed & (not rendered.robot.roams))
    size = np.ptp(corners(model, rendered.data, shown), axis=0)
    self._cells = cells(
      count, np.maximum((APART if rendered.robot.roams else ROOM) * size[:2], LEAST * size[2])
    )
    for body in np.unique(model.geom_bodyid[fixed]):
      self._add(server, rendered, int(body), np.flatnonzero(fixed & (model.geom_bodyid == body)).tolist())

  def _add(self, server: viser.ViserServer, rendered: TaskScene, body: int, geoms: list[int]) -> None:
    """Add copies of a body's geoms, below the frame that moves with the page's origin."""
    count = rendered.task.num_envs - 1
    turn = np.zeros(4)
    mujoco.mju_mat2Quat(turn, rendered.data.xmat[body])
    for part, group in enumerate(group_geoms_by_visual_compat(rendered.model, geoms)):
      handle = server.scene.add_batched_meshes_trimesh(
        f"/fixed_bodies/others/{body}/{part}",
        merge_geoms(rendered.model, group),
        batched_wxyzs=np.tile(turn, (count, 1)),
        batched_positions=np.zeros((count, 3)),
        visible=False,
      )
      self._copies.append((handle, rendered.data.xpos[body].copy()))

  def show(self, others: bool, selected: int) -> NDArray[np.float64]:
    """Show or hide the copies; return how far each environment is moved [num_envs, 3] [m]."""
    moved = self._cells - self._cells[selected]
    if self._shown == (others, selected):
      return moved
    self._shown = (others, selected)
    for handle, place in self._copies:
      if others:
        handle.batched_positions = np.delete(moved, selected, axis=0) + place
      handle.visible = others
    return moved
