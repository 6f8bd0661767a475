"""A control step, traced for one model: evaluate, report, integrate, substep after substep."""

import gc
from collections.abc import Iterator
from contextlib import contextmanager

from physics.derived import Derived
from physics.dynamics.bodies import is_long
from physics.forward import forward
from physics.integrate import OneStage, RungeKutta
from physics.model.model import Model
from physics.outputs import Outputs
from physics.sensor import measured
from physics.sensor.history import remember_sensors
from physics.state.delay import acting_controls, remember
from physics.state.layout import Layout
from physics.state.state import Memory
from physics.trace.trace import Number, Program
from physics.vary.vary import Variation


@contextmanager
def _uncollected() -> Iterator[None]:
  """Pause Python's garbage collector, which would look through all statements again and again."""
  enabled = gc.isenabled()
  gc.disable()
  try:
    yield
  finally:
    if enabled:
      gc.enable()


@_uncollected()
def trace_step(
  model: Model, layout: Layout, moving_capacity: int | None = None, variation: Variation | None = None
) -> Program:
  """Trace `substeps` time steps in one program (MuJoCo's `mj_step`).

  Parameters: substeps; stride, the number of rows between the controls of two substeps (0: controls are
  held); integrate (0: only derived quantities are computed, and the state stays). Arrays: state
  `[layout.rows, env]`, control `[row, env]`, parameters `[variation.rows, env]` if the model varies fields.
  """
  program = Program(repeats=is_long(model))
  if variation:
    model = variation.model_in(program)
  substeps, stride, integrate = (program.parameter(name) for name in ("substeps", "stride", "integrate"))
  selected = program.read_memory("state", layout.blocks["mask"].start) > 0.5
  memory, outputs = Memory(program, layout), Outputs(program, layout, selected)
  method = (RungeKutta if model.integrator == "RK4" else OneStage)(program, model, memory)
  with program.loop(substeps) as substep:
    program.break_if_none(selected)
    ctrl: list[Number] = [program.read_memory("control", substep * stride + i) for i in range(model.nu)]
    with method.stages(integrate):
      acting = acting_controls(model, memory["past_ctrl"], ctrl, method.offsets, method.choose)
      state, qacc = memory.state(acting), memory["qacc_warmstart"]
      evaluation = forward(program, model, state, qacc, moving_capacity, method.choose(method.elapsed))
      memory.count(evaluation.contacts.dropped, evaluation.search.stalled[0], evaluation.qacc)
      for names in method.moments(list(layout.outputs)):
        derived = Derived(program, model, evaluation, memory)
        outputs.gather(names, derived)
        with program.when_equal(substep + 1, substeps):
          outputs.write(names, derived)
      with program.when_less(0, integrate):
        with method.at_start():
          remember_sensors(Derived(program, model, evaluation, memory), measured)
        method.advance(evaluation)
    with program.when_less(0, integrate):
      remember(program, model, memory["past_ctrl"], ctrl)
      memory.advance_time(model.timestep)
  with program.when_less(0, integrate):
    memory.write(selected)
  return program.finish()
