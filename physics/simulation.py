"""The simulation: many environments of one model, stepped in parallel on one device."""

from collections.abc import Callable
from functools import lru_cache

import numpy as np
import torch

from physics.camera.renderer import Draw, Images, Renderer
from physics.camera.view import View, trace_view
from physics.model.model import Floats, Model
from physics.ray.raycaster import Rays, trace_rays
from physics.state.delay import waits_at_start
from physics.state.layout import COUNTERS, STATE, Layout, OutputSpec, default_outputs, field_shapes
from physics.step import trace_step
from physics.trace.kernel import lanes_on, padded
from physics.trace.launcher import Launcher, Parameters, Recording, indexed
from physics.trace.threads import usable_cores
from physics.trace.trace import Program
from physics.vary.vary import SOURCES, Variation


class Simulation:
  """A batch of `num_envs` environments of one model on one device.

  Fields are torch views `[num_envs, ...]` on memory laid out `[field, env]`, float32 (counters int32), with
  MuJoCo's names, shapes and conventions; write them in place. Derived fields (all except state and input)
  hold their values at the start of the last substep. The fields that the model varies are views too; the
  next step begins by updating the constants that depend on them. A reset does not change them.

  Args:
    model: from `load_model`.
    num_envs: number of environments.
    device: "cpu" or a CUDA device.
    threads: CPU threads; None: every core that this process may use. Results do not depend on it.
    outputs: derived fields to compute, see `layout.field_shapes`; None: `layout.default_outputs`. A mapping
      gives each field's reduction over the time steps of one `step`: "last", "mean" or "max".
    moving_capacity: contacts between moving bodies that one environment can hold; None: derived from the
      model. If there are more, the shallowest are dropped, and `overflow` counts them.
  """

  # State and input:
  time: torch.Tensor  # [num_envs, time_rows] [s] since the reset, if a clock shows it
  qpos: torch.Tensor  # [num_envs, nq] [m or rad] and quaternions
  qvel: torch.Tensor  # [num_envs, nv] [m/s or rad/s]
  act: torch.Tensor  # [num_envs, na] [varies] activations
  plastic: torch.Tensor  # [num_envs, nplastic] [m or rad] and quaternions where plastic springs rest
  past_ctrl: torch.Tensor  # [num_envs, past_rows] [varies] delayed controls, by actuator, the oldest first
  past_sensordata: torch.Tensor  # [num_envs, past_sensor_rows] [varies] of late sensors, oldest first
  sensor_wait: torch.Tensor  # [num_envs, wait_rows] [time steps] until periodic sensors measure
  mocap_pos: torch.Tensor  # [num_envs, nmocap, 3] [m]
  mocap_quat: torch.Tensor  # [num_envs, nmocap, 4] [1]
  qacc_warmstart: torch.Tensor  # [num_envs, nv] [m/s^2 or rad/s^2] where the solver starts
  ctrl: torch.Tensor  # [num_envs, nu] [varies]
  # Default outputs:
  qacc: torch.Tensor  # [num_envs, nv] [m/s^2 or rad/s^2]
  xpos: torch.Tensor  # [num_envs, nbody, 3] [m]
  xquat: torch.Tensor  # [num_envs, nbody, 4] [1]
  cfrc_ext: torch.Tensor  # [num_envs, nbody, 6] [N m, N] of contacts and spatial tendons; the world's is zero
  sensordata: torch.Tensor  # [num_envs, nsensordata] [varies] if the model has sensors
  contact_count: torch.Tensor  # [num_envs] int32
  overflow: torch.Tensor  # [num_envs] int32, contacts dropped in the last step, summed over its substeps
  solver_niter: torch.Tensor  # [num_envs] int32, iterations
  stalled: torch.Tensor  # [num_envs] int32, substeps with no lower cost found far from the solution
  diverged: torch.Tensor  # [num_envs] int32, substeps of the last step without finite, sane accelerations
  # Further outputs, where `outputs` asks for them:
  xmat: torch.Tensor  # [num_envs, nbody, 9] [1] row by row, as all rotation matrices here
  xipos: torch.Tensor  # [num_envs, nbody, 3] [m] centres of mass
  ximat: torch.Tensor  # [num_envs, nbody, 9] [1] axes of inertia
  geom_xpos: torch.Tensor  # [num_envs, ngeom, 3] [m]
  geom_xmat: torch.Tensor  # [num_envs, ngeom, 9] [1]
  site_xpos: torch.Tensor  # [num_envs, nsite, 3] [m]
  site_xmat: torch.Tensor  # [num_envs, nsite, 9] [1]
  cvel: torch.Tensor  # [num_envs, nbody, 6] [rad/s, m/s]
  cacc: torch.Tensor  # [num_envs, nbody, 6] [rad/s^2, m/s^2]
  cinert: torch.Tensor  # [num_envs, nbody, 10] six of [kg m^2], three of [kg m], one of [kg]
  cfrc_int: torch.Tensor  # [num_envs, nbody, 6] [N m, N]
  subtree_com: torch.Tensor  # [num_envs, nbody, 3] [m]
  subtree_linvel: torch.Tensor  # [num_envs, nbody, 3] [m/s]
  subtree_angmom: torch.Tensor  # [num_envs, nbody, 3] [kg m^2/s]
  qM: torch.Tensor  # [num_envs, nv, nv] [kg, kg m or kg m^2] both triangles
  qacc_smooth: torch.Tensor  # [num_envs, nv] [m/s^2 or rad/s^2]
  qfrc_bias: torch.Tensor  # [num_envs, nv] [N or N m]
  qfrc_passive: torch.Tensor  # [num_envs, nv] [N or N m]
  qfrc_actuator: torch.Tensor  # [num_envs, nv] [N or N m]
  qfrc_smooth: torch.Tensor  # [num_envs, nv] [N or N m]
  qfrc_constraint: torch.Tensor  # [num_envs, nv] [N or N m]
  actuator_length: torch.Tensor  # [num_envs, nactuator] [m or rad]
  actuator_velocity: torch.Tensor  # [num_envs, nactuator] [m/s or rad/s]
  actuator_force: torch.Tensor  # [num_envs, nactuator] [N or N m]
  ten_length: torch.Tensor  # [num_envs, ntendon] [m or rad]
  ten_velocity: torch.Tensor  # [num_envs, ntendon] [m/s or rad/s]
  energy: torch.Tensor  # [num_envs, 2] [J] potential, kinetic
  # Numbers of the model, where it varies them; see `Model`:
  body_mass: torch.Tensor  # [num_envs, nbody] [kg]
  body_inertia: torch.Tensor  # [num_envs, nbody, 3] [kg m^2]
  body_ipos: torch.Tensor  # [num_envs, nbody, 3] [m]
  body_iquat: torch.Tensor  # [num_envs, nbody, 4] [1]
  dof_armature: torch.Tensor  # [num_envs, nv] [kg or kg m^2]
  tendon_armature: torch.Tensor  # [num_envs, ntendon] [kg or kg m^2]
  gravity: torch.Tensor  # [num_envs, 3] [m/s^2]
  geom_size: torch.Tensor  # [num_envs, ngeom, 3] [m]
  geom_surfacevel: torch.Tensor  # [num_envs, ngeom, 6] [m/s, rad/s]
  geom_friction: torch.Tensor  # [num_envs, ngeom, 3] [1, m, m]
  geom_solref: torch.Tensor  # [num_envs, ngeom, 2] [s, 1]
  geom_solimp: torch.Tensor  # [num_envs, ngeom, 5] [1, 1, m, 1, 1]
  pair_friction: torch.Tensor  # [num_envs, npair, 5] [1, 1, m, m, m]
  pair_solref: torch.Tensor  # [num_envs, npair, 2] [s, 1]
  pair_solimp: torch.Tensor  # [num_envs, npair, 5] [1, 1, m, 1, 1]
  jnt_stiffness: torch.Tensor  # [num_envs, njnt] [N/m or N m/rad]
  jnt_range: torch.Tensor  # [num_envs, njnt, 2] [m or rad]
  jnt_solref: torch.Tensor  # [num_envs, njnt, 2] [s, 1]
  jnt_solimp: torch.Tensor  # [num_envs, njnt, 5] [1, 1, m or rad, 1, 1]
  dof_damping: torch.Tensor  # [num_envs, nv] [N s/m or N m s/rad]
  dof_frictionloss: torch.Tensor  # [num_envs, nv] [N or N m]
  dof_solref: torch.Tensor  # [num_envs, nv, 2] [s, 1]
  dof_solimp: torch.Tensor  # [num_envs, nv, 5] [1, 1, m or rad, 1, 1]
  actuator_gainprm: torch.Tensor  # [num_envs, nactuator, 10] [varies]
  actuator_biasprm: torch.Tensor  # [num_envs, nactuator, 10] [varies]
  actuator_ctrlrange: torch.Tensor  # [num_envs, nu, 2] [varies]
  actuator_forcerange: torch.Tensor  # [num_envs, nactuator, 2] [N or N m]
  eq_data: torch.Tensor  # [num_envs, neq, 12] [varies]
  eq_solref: torch.Tensor  # [num_envs, neq, 2] [s, 1]
  eq_solimp: torch.Tensor  # [num_envs, neq, 5] [1, 1, m or rad, 1, 1]

  def __init__(
    self,
    model: Model,
    num_envs: int,
    device: str | torch.device = "cpu",
    threads: int | None = None,
    outputs: OutputSpec | None = None,
    moving_capacity: int | None = None,
  ) -> None:
    if not isinstance(num_envs, int | np.integer) or num_envs < 1:
      raise ValueError(f"num_envs={num_envs!r}: write a number of environments, 1 or more")
    self.model, self.num_envs, self.device = model, num_envs, indexed(device)
    chosen = Layout(model, default_outputs(model) if outputs is None else outputs).outputs
    self.layout, self.variation, self.program = _trace(model, tuple(chosen.items()), moving_capacity)
    room = padded(num_envs, self.device.type)
    self._memory, self._controls, self._parameters = (
      torch.zeros(rows, room, device=self.device)
      for rows in (self.layout.rows, max(1, model.nu), max(1, self.variation.rows))
    )
    self._start = torch.tensor(start_values(model), dtype=torch.float32, device=self.device)[:, None]
    self._memory[: self.layout.state_rows] = self._start
    self._selected = self._memory[self.layout.blocks["mask"].start]  # where `forward` computes, padding too
    self._selected.fill_(1.0)
    for name in (*STATE, *self.layout.outputs):
      setattr(self, name, self._view(name))
    for name in model.varied:
      block = self.variation.blocks[name]
      rows = self._parameters[block.start : block.start + block.rows]
      rows.copy_(torch.tensor(getattr(model, name), device=self.device).reshape(-1, 1).expand_as(rows))
      setattr(self, name, rows[:, :num_envs].T.unflatten(1, block.shape))
    if self.variation.program:
      block = self.variation.blocks[SOURCES]
      self._parameters[block.start : block.start + block.rows] = torch.nan
    self.ctrl = self._controls[: model.nu, :num_envs].T
    self.threads = (threads or usable_cores()) if self.device.type == "cpu" else 1
    programs = [program for program in (self.variation.program, self.program) if program]
    groups = room // lanes_on(self.device.type)
    self._step = Launcher.of(programs, self.device, groups, self.threads)
    self._recorded: dict[Parameters, Recording] = {}
    self._schedules: dict[int, torch.Tensor] = {}  # controls of all time steps, by their number

  def __repr__(self) -> str:
    where = f"{self.threads} threads" if self.device.type == "cpu" else str(self.device)
    return f"Simulation({self.num_envs} environments of {self.bytes_per_env:,} bytes each, {where})"

  @property
  def bytes_per_env(self) -> int:
    """Memory of one environment [bytes]: state, outputs, controls, parameters."""
    rows = (self._memory, self._controls, self._parameters, *self._schedules.values())
    return sum(len(part) * part.element_size() for part in rows)

  def step(self, substeps: int = 1, ctrl: torch.Tensor | None = None) -> None:
    """Advance all environments by `substeps` time steps in one launch.

    Args:
      substeps: number of time steps.
      ctrl: [num_envs, substeps, nu] one control per substep; None: `self.ctrl` is held.
    """
    if ctrl is None:
      self._launch((substeps, 0, 1), self._controls)
      return
    nu = self.model.nu
    if ctrl.shape != (self.num_envs, substeps, nu):
      raise ValueError(f"ctrl has shape {tuple(ctrl.shape)}, expected {(self.num_envs, substeps, nu)}")
    if substeps not in self._schedules:
      self._schedules[substeps] = torch.zeros(substeps * nu, self._memory.shape[1], device=self.device)
    controls = self._schedules[substeps]
    controls[:, : self.num_envs] = ctrl.reshape(self.num_envs, -1).T
    self._launch((substeps, nu, 1), controls)
    self.ctrl[:] = ctrl[:, -1]

  def forward(self, mask: torch.Tensor | None = None) -> None:
    """Compute derived fields of the present state where `mask` [num_envs] holds (None: everywhere)."""
    if mask is not None:
      self._check(mask)
      self._selected.zero_()
      self._selected[: self.num_envs] = mask
    self._launch((1, 0, 0), self._controls)
    if mask is not None:
      self._selected.fill_(1.0)

  def reset(self, mask: torch.Tensor | None = None) -> None:
    """Set state and controls to the model's defaults where `mask` [num_envs] holds (None: everywhere)."""
    if mask is not None:
      self._check(mask)
    state = self._memory[: self.layout.state_rows, : self.num_envs]
    controls = self._controls[:, : self.num_envs]
    keep = torch.zeros(self.num_envs, dtype=torch.bool, device=self.device) if mask is None else ~mask
    state.copy_(torch.where(keep, state, self._start))
    controls.masked_fill_(~keep, 0.0)

  def _check(self, mask: torch.Tensor) -> None:
    """Raise ValueError unless `mask` is one: indices of environments are none."""
    if mask.dtype != torch.bool or mask.shape != (self.num_envs,):
      found = f"{mask.dtype} of shape {tuple(mask.shape)}"
      raise ValueError(f"mask is {found}, expected torch.bool of shape {(self.num_envs,)}")

  def get_state(self) -> torch.Tensor:
    """Return a copy [rows, num_envs] of everything that the future depends on."""
    return torch.cat([rows[:, : self.num_envs] for rows in self._everything()])

  def set_state(self, state: torch.Tensor) -> None:
    """Restore what `get_state` returned."""
    parts = self._everything()
    if state.shape != (expected := (sum(map(len, parts)), self.num_envs)):
      raise ValueError(f"state has shape {tuple(state.shape)}, expected {expected}")
    for rows, saved in zip(parts, state.split([len(rows) for rows in parts]), strict=True):
      rows[:, : self.num_envs] = saved

  def attach_rays(self, rays: Rays) -> tuple[Callable[[], None], torch.Tensor]:
    """Return a function that casts rays in the present state, and the [num_envs, num_rays] it writes."""
    program = trace_rays(self.model, self.layout, rays, self.variation)
    launch, distances = self.attach(program, len(rays.origins))
    return launch, distances[:, : self.num_envs].T

  def attach_view(self, view: View) -> tuple[Draw, torch.Tensor, Images]:
    """Return a function that draws a view's images in the present state, its scene [row, env], the images."""
    place, scene = self.attach(
      trace_view(self.model, self.layout, view, self.variation), view.rows(self.model)
    )
    renderer = Renderer(self.model, view, self.num_envs, scene, self.threads)

    def draw(mask: torch.Tensor | None) -> None:
      place()
      renderer.draw(mask)

    return draw, scene, renderer.images

  def attach(self, program: Program, rows: int) -> tuple[Callable[[], None], torch.Tensor]:
    """Return a function that runs a program on the present state, and the memory [rows, env] it writes.

    The program knows this memory as `control`.
    """
    launcher = Launcher.of([program], self.device, self._step.groups, self.threads)
    results = torch.zeros(rows, self._memory.shape[1], device=self.device)
    recording = launcher.record([1, 0, 0, self._memory, results, self._parameters])
    return recording.run, results

  def _everything(self) -> list[torch.Tensor]:
    varied = sum(self.variation.blocks[name].rows for name in self.model.varied)
    return [self._memory[: self.layout.state_rows], self._controls, self._parameters[:varied]]

  def _view(self, name: str) -> torch.Tensor:
    block = self.layout.blocks[name]
    rows = self._memory[block.start : block.start + block.rows, : self.num_envs].T
    if name in COUNTERS:
      rows = self._memory.view(torch.int32)[block.start : block.start + 1, : self.num_envs].T
    return rows.unflatten(1, block.shape) if block.shape else rows[:, 0]

  @torch.compiler.disable
  def _launch(self, parameters: Parameters, controls: torch.Tensor) -> None:
    """Run the kernels: one that derives constants from varied fields, then the step.

    Calls with equal parameters must pass the same tensor `controls`, because launches are recorded once.
    """
    if parameters not in self._recorded:
      inputs = [*parameters, self._memory, controls, self._parameters]
      self._recorded[parameters] = self._step.record(inputs)
    self._recorded[parameters].run()


@lru_cache(maxsize=2)
def _trace(
  model: Model, outputs: tuple[tuple[str, str], ...], moving_capacity: int | None
) -> tuple[Layout, Variation, Program]:
  """Return the program that computes these outputs of a model; simulations of one model share it."""
  layout, variation = Layout(model, dict(outputs)), Variation(model)
  return layout, variation, trace_step(model, layout, moving_capacity, variation)


def start_values(model: Model) -> Floats:
  """Return the state [state_rows] that a reset writes: the model's defaults."""
  defaults = {"qpos": model.qpos0, "plastic": model.plastic0}
  defaults |= {"mocap_pos": model.mocap_pos0, "mocap_quat": model.mocap_quat0}
  defaults["sensor_wait"] = np.array(waits_at_start(model))
  shapes = field_shapes(model)
  return np.concatenate([defaults.get(name, np.zeros(shapes[name])).ravel() for name in STATE])
