"""MuJoCo C with the interface of `Simulation`."""

import copy
from collections.abc import Callable, Iterator

import mujoco
import numpy as np
import torch
from mujoco import mjtState

from physics.camera.renderer import Draw, Images, Renderer
from physics.camera.view import View
from physics.engines.rays import cast
from physics.engines.scenes import SceneOfMujoco
from physics.model.model import Floats, Model
from physics.ray.raycaster import Rays
from physics.state.layout import COUNTERS, Layout, OutputSpec, default_outputs
from physics.state.reduction import LAST

# The parts of MuJoCo's full state that this engine has too, in the order of mj_getState.
STATE = {
  "time": mjtState.mjSTATE_TIME,
  "qpos": mjtState.mjSTATE_QPOS,
  "qvel": mjtState.mjSTATE_QVEL,
  "act": mjtState.mjSTATE_ACT,
  "history": mjtState.mjSTATE_HISTORY,
  "qacc_warmstart": mjtState.mjSTATE_WARMSTART,
  "ctrl": mjtState.mjSTATE_CTRL,
  "mocap_pos": mjtState.mjSTATE_MOCAP_POS,
  "mocap_quat": mjtState.mjSTATE_MOCAP_QUAT,
  "plastic": mjtState.mjSTATE_PLASTIC,
}
SIGNATURE = sum(part.value for part in STATE.values())


class MujocoSimulation:
  """MuJoCo C with the interface of `Simulation`: `num_envs` environments, stepped one by one in float64.

  Fields are tensors [num_envs, ...] on the CPU, written in place and never rebound: the state, the fields
  that vary, and the derived `outputs`. MuJoCo by itself resets an environment with a state that
  is not finite. `mj` replaces the compiled model that `model` carries.
  """

  def __init__(
    self,
    model: Model,
    num_envs: int,
    outputs: OutputSpec | None = None,
    mj: mujoco.MjModel | None = None,
  ) -> None:
    self.model, self.num_envs = model, num_envs
    self.device, self.threads = torch.device("cpu"), 1
    self._mj = mj or model.mj
    if model.varied:
      self._mj = copy.copy(self._mj)  # each environment's numbers are written into it
    self._data = mujoco.MjData(self._mj)
    self._start = np.empty(mujoco.mj_stateSize(self._mj, SIGNATURE))
    mujoco.mj_getState(self._mj, self._data, self._start, SIGNATURE)
    self._state = np.tile(self._start, (num_envs, 1))
    views = torch.from_numpy(self._state).split(
      [mujoco.mj_stateSize(self._mj, part.value) for part in STATE.values()], dim=1
    )
    for name, view in zip(STATE, views, strict=True):
      setattr(self, name, view.unflatten(1, np.shape(getattr(self._data, name)) or (1,)))
    self._varied = {name: np.tile(array, (num_envs, *[1] * array.ndim)) for name, array in self._own()}
    self._reductions = Layout(model, default_outputs(model) if outputs is None else outputs).outputs
    derived = [name for name in self._reductions if name not in COUNTERS]
    self._outputs = {name: np.zeros((num_envs, *self._read(name).shape)) for name in derived}
    for name, array in (self._varied | self._outputs).items():
      setattr(self, name, torch.from_numpy(array))
    self.contact_count = torch.zeros(num_envs, dtype=torch.int32)
    self.overflow = torch.zeros(num_envs, dtype=torch.int32)  # stays 0: MuJoCo's lists grow
    self.diverged = torch.zeros(num_envs, dtype=torch.int32)  # stays 0: MuJoCo resets what diverges
    self.solver_niter = torch.zeros(num_envs, dtype=torch.int32)

  def step(self, substeps: int = 1, ctrl: torch.Tensor | None = None) -> None:
    """Advance by `substeps` time steps; `ctrl` [num_envs, substeps, nu] gives each its own control."""
    for env in range(self.num_envs):
      self._load(env)
      for substep in range(substeps):
        if ctrl is not None:
          self._data.ctrl[:] = ctrl[env, substep].numpy()
        mujoco.mj_step(self._mj, self._data)
        if substep == substeps - 1 or {*self._reductions.values()} != {LAST}:
          self._store(env, substep)
      mujoco.mj_getState(self._mj, self._data, self._state[env], SIGNATURE)

  def forward(self, mask: torch.Tensor | None = None) -> None:
    """Compute derived quantities of the present state where `mask` [num_envs] holds (default: everywhere)."""
    for env in self._selected(mask):
      self._load(env)
      mujoco.mj_forward(self._mj, self._data)
      self._store(env)

  def reset(self, mask: torch.Tensor | None = None) -> None:
    """Set the model's defaults where `mask` [num_envs] holds (default: everywhere)."""
    self._state[self._selected(mask)] = self._start

  def get_state(self) -> torch.Tensor:
    """Return a copy [num_envs, size] of everything that the future depends on."""
    return torch.from_numpy(self._state.copy())

  def set_state(self, state: torch.Tensor) -> None:
    """Restore what `get_state` returned."""
    self._state[:] = state.numpy()

  def attach_rays(self, rays: Rays) -> tuple[Callable[[], None], torch.Tensor]:
    """Return a function that casts rays in the present state, one by one, and the tensor that it writes."""
    distance = torch.zeros(self.num_envs, len(rays.origins), dtype=torch.float64)

    def launch() -> None:
      for env in range(self.num_envs):
        self._load(env)
        mujoco.mj_kinematics(self._mj, self._data)
        distance[env] = torch.from_numpy(cast(self._mj, self._data, rays))

    return launch, distance

  def attach_view(self, view: View) -> tuple[Draw, torch.Tensor, Images]:
    """Return a function that draws a view's images in the present state, its scene [row, env], the images."""
    scene = torch.zeros(view.rows(self.model), self.num_envs)
    place = SceneOfMujoco(self.model, view)
    renderer = Renderer(self.model, view, self.num_envs, scene, self.threads)

    def draw(mask: torch.Tensor | None) -> None:
      fields = {name: getattr(self, name).numpy() for name in ("qpos", "mocap_pos", "mocap_quat")}
      place(fields | self._varied, scene.numpy())
      renderer.draw(mask)

    return draw, scene, renderer.images

  def _selected(self, mask: torch.Tensor | None) -> list[int]:
    return list(range(self.num_envs)) if mask is None else torch.nonzero(mask).flatten().tolist()

  def _own(self) -> Iterator[tuple[str, Floats]]:
    """Yield the numbers of MuJoCo's model that vary, by name."""
    for name in self.model.varied:
      yield name, getattr(self._mj.opt if name == "gravity" else self._mj, name)

  def _load(self, env: int) -> None:
    for name, array in self._own():
      array[:] = self._varied[name][env]
    if self._varied:
      mujoco.mj_setConst(self._mj, self._data)
    mujoco.mj_setState(self._mj, self._data, self._state[env], SIGNATURE)

  def _store(self, env: int, substep: int = 0) -> None:
    """Store the derived quantities of an environment after a time step; `substep` counts from 0."""
    if self._outputs:
      mujoco.mj_rnePostConstraint(self._mj, self._data)
    for name, array in self._outputs.items():
      value, reduction = self._read(name), self._reductions[name]
      if substep and reduction == "max":
        value = np.maximum(array[env], value)
      elif substep and reduction == "mean":
        value = array[env] + (value - array[env]) / (substep + 1)
      array[env] = value
    self.contact_count[env] = int((self._data.contact.exclude == 0).sum())
    self.solver_niter[env] = int(self._data.solver_niter.max())

  def _read(self, name: str) -> Floats:
    return read_field(self._mj, self._data, name)


def read_field(mj: mujoco.MjModel, data: mujoco.MjData, name: str) -> Floats:
  """Return a field of MuJoCo's data; `qM` is the mass matrix [nv, nv] with both triangles."""
  return full_mass_matrix(mj, data) if name == "qM" else getattr(data, name)


def full_mass_matrix(mj: mujoco.MjModel, data: mujoco.MjData) -> Floats:
  """Return M [nv, nv], both triangles."""
  M = np.zeros((mj.nv, mj.nv))
  mujoco.mj_fullM(mj, data, M)
  return M
