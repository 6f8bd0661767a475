"""Camera scenes in MuJoCo C's states, by the traced program in float64."""

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from physics.camera.view import View, trace_view
from physics.model.model import Floats, Model
from physics.state.layout import Layout
from physics.trace.emit_numpy import numpy_function
from physics.vary.vary import Variation


class SceneOfMujoco:
  """The program of a view's scene, run by NumPy."""

  def __init__(self, model: Model, view: View) -> None:
    self._layout, self._variation = Layout(model, ()), Variation(model)
    self._run = numpy_function(trace_view(model, self._layout, view, self._variation))

  def __call__(self, fields: Mapping[str, Floats], scene: NDArray[np.floating]) -> None:
    """Compute the scene [row, env] of states and varied numbers [num_envs, ...] by name."""
    num_envs = scene.shape[1]
    memory, rows = np.zeros((self._layout.rows, num_envs)), scene.astype(float)
    parameters = np.zeros((max(1, self._variation.rows), num_envs))
    for name, values in fields.items():
      varied = self._variation.blocks
      target, blocks = (parameters, varied) if name in varied else (memory, self._layout.blocks)
      block = blocks[name]
      target[block.start : block.start + block.rows] = values.reshape(num_envs, -1).T
    self._run(1, 0, 0, state=memory, control=rows, parameters=parameters)
    scene[:] = rows
