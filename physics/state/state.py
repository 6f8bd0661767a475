"""The state that dynamics start from, and its copy in group memory while substeps run."""

from collections.abc import Mapping
from dataclasses import dataclass

from physics.state.layout import STATE, Layout
from physics.trace.each import summed
from physics.trace.trace import Array, Mask, Number, Program, Truth, absolute, floor, where

HISTORIES = ("past_sensordata", "sensor_wait")
OPTIONAL = ("time", "plastic", *HISTORIES)  # parts that models without use for them have no memory for
# Parts of the state that are no part of `State`.
UNEVALUATED = ("time", "past_ctrl", *HISTORIES, "qacc_warmstart")
REPEATED = ("qpos", "qvel")  # parts that loops read
LARGEST = 1e10  # mjMAXVAL: an acceleration beyond it makes MuJoCo warn of an unstable simulation
LARGEST_FORCE = 1e18  # [N, N m] float32 can square it; dampers that hold a joint still exert 1e11 and more


@dataclass(frozen=True)
class State:
  """A state and the inputs that act on it: lists of numbers under MuJoCo's names."""

  qpos: list[Number]  # [nq]
  qvel: list[Number]  # [nv]
  act: list[Number]  # [na]
  plastic: list[Number]  # [nplastic]
  mocap_pos: list[Number]  # [3 nmocap]
  mocap_quat: list[Number]  # [4 nmocap]
  ctrl: list[Number]  # [nu] that act now


class Memory:
  """The state in group memory, arrays by name.

  `dropped[0]` counts contacts without a slot, `stalled[0]` searches of the solver that ended far from the
  solution, `diverged[0]` time steps with accelerations that are not sane.
  """

  def __init__(self, program: Program, layout: Layout) -> None:
    self.program, self.layout = program, layout
    self.dropped, self.stalled, self.diverged = (program.variable(0.0) for _ in range(3))
    self.arrays: dict[str, Array] = {}
    for name in STATE:
      block = layout.blocks[name]
      if name in OPTIONAL and not block.rows:
        continue  # an array without rows would renumber the names in the programs of most models
      array = program.array(block.rows, prefix=name)
      if program.repeats:
        with program.loop(block.rows) as i:
          array[i] = program.read_memory("state", i + block.start)
      else:
        array.fill([program.read_memory("state", block.start + i) for i in range(block.rows)])
      self.arrays[name] = array

  def __getitem__(self, name: str) -> Array:
    return self.arrays[name]

  def count(self, dropped: Number, stalled: Number, qacc: list[Number]) -> None:
    """Count contacts without a slot, stalled searches, and accelerations [nv] not finite or too large."""
    self.dropped[0] = self.dropped[0] + dropped
    self.stalled[0] = self.stalled[0] + stalled
    self.diverged[0] = self.diverged[0] + where(is_sane(qacc), 0.0, 1.0)

  def state(self, ctrl: list[Number]) -> State:
    """Read the state, to be evaluated while the controls `ctrl` [nu] act."""
    names = [name for name in STATE if name not in UNEVALUATED]
    parts = {name: self._part(name) for name in names}
    return State(**parts, ctrl=ctrl)

  def _part(self, name: str) -> list[Number]:
    if name not in self.arrays:
      return []
    return self[name].values() if name in REPEATED else self[name].read()

  def fill(self, values: Mapping[str, list[Number]]) -> None:
    """Replace parts of the state: values [rows] by name."""
    for name, value in values.items():
      self[name].fill(value)

  def advance_time(self, timestep: float) -> None:
    """Add a time step; the time is a whole number of them, so that no rounding adds up."""
    if "time" in self.arrays:
      time = self["time"]
      time[0] = (floor(time[0] / timestep + 0.5) + 1.0) * timestep

  def write(self, selected: Mask) -> None:
    """Write the state back to the argument memory in the selected lanes."""
    for name, array in self.arrays.items():
      start = self.layout.blocks[name].start
      if self.program.repeats:
        with self.program.loop(len(array)) as row:
          self.program.write_memory("state", row + start, array[row], selected)
        continue
      for i, value in enumerate(array.read()):
        self.program.write_memory("state", start + i, value, selected)


def is_sane(values: list[Number], largest: float = LARGEST) -> Truth:
  """Return whether accelerations or forces [nv] are finite and within reason (MuJoCo's `mj_checkAcc`)."""
  return summed(absolute, values) < largest  # false for nan
