"""What the dynamics start from, and how it is kept in group memory while substeps run."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from physics.layout import STATE, Layout
from physics.trace import Array, Mask, Number, Program


@dataclass(frozen=True)
class State:
  """One state and the inputs that act on it: lists of numbers under MuJoCo's names."""

  qpos: list[Number]  # [nq]
  qvel: list[Number]  # [nv]
  act: list[Number]  # [na]
  mocap_pos: list[Number]  # [3 nmocap]
  mocap_quat: list[Number]  # [4 nmocap]
  ctrl: list[Number]  # [nu] that act now


class Memory:
  """The state in group memory, arrays by name; `dropped[0]` counts the contacts without a slot."""

  def __init__(self, program: Program, layout: Layout) -> None:
    self.program, self.layout = program, layout
    self.dropped = program.variable(0.0)
    self.arrays: dict[str, Array] = {}
    for name in STATE:
      block = layout.blocks[name]
      array = program.array(block.rows, prefix=name)
      array.fill([program.read_memory("state", block.start + i) for i in range(block.rows)])
      self.arrays[name] = array

  def __getitem__(self, name: str) -> Array:
    return self.arrays[name]

  def state(self, ctrl: list[Number]) -> State:
    """Read the state, to be evaluated while these controls act."""
    parts = {name: self[name].read() for name in STATE if name not in ("past_ctrl", "qacc_warmstart")}
    return State(**parts, ctrl=ctrl)

  def fill(self, values: Mapping[str, list[Number]]) -> None:
    """Replace parts of the state."""
    for name, value in values.items():
      self[name].fill(value)

  def write(self, selected: Mask) -> None:
    """Write the state back to the argument memory in the selected lanes."""
    for name, array in self.arrays.items():
      for i, value in enumerate(array.read()):
        self.program.write_memory("state", self.layout.blocks[name].start + i, value, selected)
