"""Poses of a state in a program of their own, for rays and cameras."""

from physics.dynamics.kinematics import Mocap, Poses, poses
from physics.model.model import Model
from physics.state.layout import Layout
from physics.state.state import Memory
from physics.trace.trace import Program
from physics.vary.vary import Variation


def trace_poses(model: Model, layout: Layout, variation: Variation | None) -> tuple[Program, Model, Poses]:
  """Begin a program with the parameters and arrays of `step.trace_step`, which it only reads.

  Returns the program, the model as the program sees it, with its varied fields, and the poses of the state.
  """
  program = Program()
  if variation:
    model = variation.model_in(program)
  for name in ("substeps", "stride", "integrate"):
    program.parameter(name)
  state = Memory(program, layout).state([])
  return program, model, poses(model, state.qpos, Mocap(state.mocap_pos, state.mocap_quat))
