"""Search for contacts in a kernel, which rounds otherwise than NumPy in float32."""

import numpy as np

from physics.model.model import Floats
from physics.parity.contacts import WIDTH, trace_search, written_contacts
from physics.parity.states import States
from physics.simulation import Simulation


class KernelSearch:
  """A kernel that finds the contacts of a simulation's model, in any number of states.

  It fuses products and sums where the step does, which decides between corners of equal depth. It is built
  at the first search.
  """

  def __init__(self, simulation: Simulation) -> None:
    self._simulation = simulation
    program, self._most = trace_search(simulation.model, simulation.layout)
    self._run, self._rows = simulation.attach(program, max(1, self._most * WIDTH))

  def __call__(self, states: States) -> list[Floats]:
    """Return the contacts [n, 12] in each state, see `traced_contacts`; the simulation keeps its own."""
    count, found, own = self._simulation.num_envs, [], self._simulation.get_state()
    for start in range(0, len(states), count):
      some = states[np.arange(start, start + count) % len(states)]
      self._simulation.reset()
      some.write_to(self._simulation)
      self._rows.fill_(np.nan)
      self._run()
      found += written_contacts(self._rows[:, :count].cpu().numpy(), self._most)
    self._simulation.set_state(own)
    return found[: len(states)]
