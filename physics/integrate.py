"""Time integration: Euler and implicitfast, with damping at the end of the step, and Runge-Kutta.

Source: MuJoCo's manual, chapter Computation, section Numerical integration.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext

from physics.algebra.block_matrix import factored
from physics.algebra.sparse import At, SparseMatrix
from physics.algebra.spatial import Quaternion, Vector, cross, dot
from physics.dynamics.bodies import bodies, joints
from physics.dynamics.ellipsoid import ellipsoids
from physics.dynamics.kinematics import BALL, FREE
from physics.dynamics.passive import damper_slopes
from physics.dynamics.plastic import plastic_tendons, yielded
from physics.forward import Evaluation
from physics.model.model import Model
from physics.smooth import Smooth, solution
from physics.state.state import Memory
from physics.trace.each import alike, follow, mapped, numbers, repeating, stored
from physics.trace.trace import Index, Number, Program, absolute, cos, is_zero, sin, sqrt, where

Parts = Mapping[str, list[Number]]  # parts of the state, or their rates of change; the rate of "qpos" is [nv]
AT_START = ("sensordata",)  # outputs that the first evaluation of a time step reports
STAGES = 4  # of Runge-Kutta's method
STEP_TO_NEXT = (0.5, 0.5, 1.0, 0.0)  # [time steps] from the start to the next stage, at a stage's rate
WEIGHT = (1 / 6, 1 / 3, 1 / 3, 1 / 6)  # of a stage's rate in the time step


class OneStage:
  """Euler's method and implicitfast: one evaluation per time step (MuJoCo's `mj_Euler`, `mj_implicit`)."""

  offsets = (0.0,)  # times of the evaluations after the start of the time step [time steps]
  elapsed = (1.0,)  # times since the evaluations before them [time steps]

  def __init__(self, program: Program, model: Model, memory: Memory) -> None:
    self.program, self.model, self.memory = program, model, memory

  @contextmanager
  def stages(self, _integrate: Index) -> Iterator[None]:
    """Run the block once: there is one evaluation."""
    yield

  def at_start(self) -> AbstractContextManager[None]:
    """Run the block in the evaluation of the start of the time step, the only one."""
    return nullcontext()

  def moments(self, names: list[str]) -> Iterator[list[str]]:
    """Yield the outputs that the evaluation reports: all of them."""
    yield names

  def choose(self, values: Sequence[float]) -> Number:
    """Return the present evaluation's value; `values` has one for each evaluation."""
    return values[0]

  def advance(self, evaluation: Evaluation) -> None:
    """Advance the state by one time step."""
    model, state, actuated = self.model, evaluation.smooth.state, evaluation.smooth.actuated
    qacc = implicit_acceleration(self.program, model, evaluation)
    qvel = mapped(lambda v, a: v + model.timestep * a, state.qvel, qacc)
    start = {"qpos": state.qpos, "qvel": state.qvel}
    act = actuated.next_activation(state.act, actuated.act_dot, actuated.length, actuated.velocity)
    later = {**moved(model, start, {"qpos": qvel, "qvel": qacc}), "act": act}
    if model.nplastic:
      cords = _plastic_cords(model, evaluation)
      later["plastic"] = _rest(model, state.plastic, later["qpos"], cords, qvel)
    self.memory.fill(later)


class RungeKutta:
  """The fourth-order Runge-Kutta method: a loop over four evaluations (MuJoCo's `mj_RungeKutta`)."""

  offsets = (0.0, 0.5, 0.5, 1.0)
  elapsed = (0.0, 0.5, 0.0, 0.5)

  def __init__(self, program: Program, model: Model, memory: Memory) -> None:
    self.program, self.model, self.memory = program, model, memory
    self.start = {name: program.array(len(memory[name])) for name in ("qpos", "qvel", "act")}
    sizes = {"qpos": model.nv, "qvel": model.nv, "act": model.na}
    self.rate = {name: program.array(size) for name, size in sizes.items()}  # weighted sum over the stages
    self.lines = [program.array(model.nactuator) for _ in range(2)]  # actuator lengths, velocities at first
    self.change = program.array(model.nv)  # from the start of the time step to the present stage
    if model.nplastic:
      self.cords = program.array(len(plastic_tendons(model)) * (1 + model.nv))  # `_plastic_cords` at first

  @contextmanager
  def stages(self, integrate: Index) -> Iterator[None]:
    """Run the block for each evaluation: all stages, or only the first if the state is not integrated."""
    for name, array in self.start.items():
      array.fill(self.memory[name].read())
      self.rate[name].fill([0.0] * len(self.rate[name]))
    self.change.fill([0.0] * self.model.nv)
    self.count = integrate * (STAGES - 1) + 1
    with self.program.loop(self.count) as self.stage:
      yield

  def choose(self, values: Sequence[float]) -> Number:
    """Return the present evaluation's value; `values` has one for each evaluation."""
    return self.program.table(values, self.stage)

  def at_start(self) -> AbstractContextManager[None]:
    """Run the block in the evaluation of the start of the time step."""
    return self.program.when_equal(self.stage, 0)

  def moments(self, names: list[str]) -> Iterator[list[str]]:
    """Yield the outputs that an evaluation reports, in a block for that evaluation.

    As in MuJoCo, sensors measure the start of the time step; other outputs belong to the last evaluation.
    """
    with self.at_start():
      yield [name for name in names if name in AT_START]
    with self._last():
      yield [name for name in names if name not in AT_START]

  @contextmanager
  def _last(self) -> Iterator[None]:
    """Run the block in the last evaluation of the time step."""
    with self.program.when_equal(self.stage + 1, self.count):
      yield

  def advance(self, evaluation: Evaluation) -> None:
    """Move the state to the next stage, or after the last stage to the end of the time step."""
    weight, ahead, end = map(self.choose, (WEIGHT, STEP_TO_NEXT, (0.0, 0.0, 0.0, 1.0)))
    actuated = evaluation.smooth.actuated
    qvel = evaluation.smooth.state.qvel
    turns = rates_of_turns(self.model, self.change.read(), qvel)
    rates = {"qpos": turns, "qvel": evaluation.qacc, "act": actuated.act_dot}
    for name, rate in rates.items():
      self.rate[name].fill([s + weight * r for s, r in zip(self.rate[name].read(), rate, strict=True)])
      rates[name] = [ahead * r + end * s for r, s in zip(rate, self.rate[name].read(), strict=True)]
    self.change.fill([self.model.timestep * rate for rate in rates["qpos"]])
    start = {name: array.read() for name, array in self.start.items()}
    act = [w + self.model.timestep * rate for w, rate in zip(start["act"], rates["act"], strict=True)]
    later = {**moved(self.model, start, rates), "act": act}
    self.memory.fill(later)
    with self.at_start():
      if self.model.nplastic:
        self.cords.fill(_plastic_cords(self.model, evaluation))
      for array, values in zip(self.lines, (actuated.length, actuated.velocity), strict=True):
        array.fill(values)
    with self._last():
      lines = (array.read() for array in self.lines)
      self.memory.fill({"act": actuated.next_activation(start["act"], self.rate["act"].read(), *lines)})
      if self.model.nplastic:
        plastic, cords = self.memory["plastic"].read(), self.cords.read()
        self.memory.fill({"plastic": _rest(self.model, plastic, later["qpos"], cords, rates["qpos"])})


def _plastic_cords(model: Model, evaluation: Evaluation) -> list[Number]:
  """Return length and moment arms [1 + nv] of each tendon with a plastic spring, one after another."""
  cords, dofs = evaluation.smooth.tendons, range(model.nv)
  rows = [
    (cords.length[i], *(cords.jacobian[i].get(dof, 0.0) for dof in dofs)) for i in plastic_tendons(model)
  ]
  return [number for row in rows for number in row]


def _rest(
  model: Model, plastic: list[Number], qpos: list[Number], cords: list[Number], rate: list[Number]
) -> list[Number]:
  """Return where plastic springs rest at the end of a time step, which takes the joints to `qpos` [nq].

  As in MuJoCo, tendons lengthen at the moment arms that they had at its start (`_plastic_cords`); `rate` [nv]
  is the joints' rate.
  """
  lengths = [
    cords[i] + model.timestep * dot(cords[i + 1 : i + 1 + model.nv], rate)
    for i in range(0, len(cords), 1 + model.nv)
  ]
  return yielded(model, plastic, qpos, lengths)


def rates_of_turns(model: Model, change: list[Number], qvel: list[Number]) -> list[Number]:
  """Return joint velocities [nv]; for rotations of ball and free joints, rates of the rotation vector.

  A body that has turned by u and rotates at w, both in body axes, changes u at the rate w + u x w / 2 +
  c u x (u x w), c = (1 - |u|/2 cot |u|/2) / |u|^2: the inverse of the exponential's derivative (Munthe-Kaas
  1999).
  """
  rates = list(qvel)
  for joint in range(model.njnt):
    dof, kind = int(model.jnt_dofadr[joint]), model.jnt_type[joint]
    if kind in (FREE, BALL):
      dof += 3 if kind == FREE else 0
      u, w = Vector(*change[dof : dof + 3]), Vector(*qvel[dof : dof + 3])
      turned = cross(u, w)
      rates[dof : dof + 3] = w + turned * 0.5 + cross(u, turned) * _bend(dot(u, u))
  return rates


def _bend(square: Number) -> Number:
  """Return (1 - x cot x) / (4 x^2), x = |u|/2, given |u|^2; a series where that would cancel."""
  small = square < 0.25
  series: Number = 0.0
  for term in (691 / 1307674368000, 1 / 47900160, 1 / 1209600, 1 / 30240, 1 / 720, 1 / 12):
    series = series * square + term
  angle = sqrt(where(small, 1.0, square))
  sine = sin(angle * 0.5)
  sine = where(absolute(sine) < 1e-6, 1e-6, sine)  # no answer for a full turn in one stage, but it is finite
  return where(small, series, (1.0 - angle * 0.5 * cos(angle * 0.5) / sine) / (angle * angle))


def moved(model: Model, start: Parts, rates: Parts) -> Parts:
  """Return the state after one time step at constant rates."""
  qvel = mapped(lambda v, a: v + model.timestep * a, start["qvel"], rates["qvel"])
  return {"qpos": integrate_position(model, start["qpos"], rates["qpos"]), "qvel": qvel}


def implicit_acceleration(program: Program, model: Model, evaluation: Evaluation) -> list[Number]:
  """Return the acceleration [nv] with damping forces taken at the end of the time step.

  With damping B, the negated derivative of the forces by velocity, the step solves (M + h B) a = M qacc.
  Euler's B is the damping of the joints, unless the file disables it. Implicitfast's comes from all
  smooth forces, restricted to the entries of M.
  """
  smooth, M, qacc = evaluation.smooth, evaluation.smooth.M, evaluation.qacc
  fast = model.integrator == "implicitfast"
  damping = smooth.damping if fast else _joint_damping(model, smooth.state.qvel)
  added = {at: model.timestep * b for at, b in damping.items() if at in M}

  def left(a: list[Number]) -> list[Number]:
    """Return the unbalanced joint forces [nv] at an acceleration; constraint forces stay."""
    damped = SparseMatrix(M.n, added) @ a
    return mapped(lambda u, v, d: u - v - d, *(smooth.unbalanced(model, x) for x in (a, qacc)), damped)

  if added:
    qacc = solution(model, factored(program, M.add(added)), M @ qacc, left)
  if fast:
    qacc = mapped(lambda a: a, qacc)
    for joint in range(model.njnt):
      if _is_free_body(model, joint):
        for dof, a in enumerate(_free_body_acceleration(model, evaluation, joint), model.jnt_dofadr[joint]):
          qacc[int(dof)] = a
  return qacc


def _joint_damping(model: Model, qvel: list[Number]) -> dict[tuple[int, int], Number]:
  if not model.eulerdamp:
    return {}
  return {(i, i): b for i, b in enumerate(damper_slopes(model, qvel)) if not is_zero(b)}


def _is_free_body(model: Model, joint: int) -> bool:
  """Return whether a joint is free and the only joint of its tree."""
  tree = model.body_treeid[model.jnt_bodyid[joint]]
  return bool(model.jnt_type[joint] == FREE and (model.body_treeid[model.dof_bodyid] == tree).sum() == 6)


def _free_body_acceleration(model: Model, evaluation: Evaluation, joint: int) -> list[Number]:
  """Return the acceleration [6] of a lone free body, with gyroscopic forces at the end of the time step too.

  With inertia J and first moment m about the body's origin, which is the tree's, the bias is the force
  w x (w x m) and the torque w x J w; their derivatives by w make the matrix unsymmetric. The unknown is the
  change of qacc, as a product M qacc would lose digits of an uneven or thin object.
  """
  smooth, h = evaluation.smooth, model.timestep
  body, first = int(model.jnt_bodyid[joint]), int(model.jnt_dofadr[joint])
  inertia, axes = smooth.composite[body], smooth.poses.rotation[body].transposed
  w = smooth.velocity[body].angular
  qacc = evaluation.qacc[first : first + 6]
  B: list[list[Number]] = [[0.0] * 6 for _ in range(6)]  # h times the damping
  for (i, j), value in smooth.damping.items():
    if first <= j <= i < first + 6:
      B[i - first][j - first] = B[j - first][i - first] = h * value
  for (i, j), value in _turning_drag(model, smooth, body):
    B[i - first][j - first] = B[i - first][j - first] + h * value
    B[j - first][i - first] = B[j - first][i - first] - h * value
  for k, axis in enumerate(axes):
    turned = cross(axis, cross(w, inertia.moment)) + cross(w, cross(axis, inertia.moment))
    torque = cross(axis, inertia.rotational @ w) + cross(w, inertia.rotational @ axis)
    for row, gain in enumerate((*turned, *(axes @ torque))):
      B[row][3 + k] = B[row][3 + k] + h * gain
  A = [[smooth.M[first + max(i, j), first + min(i, j)] + B[i][j] for j in range(6)] for i in range(6)]
  return [a + change for a, change in zip(qacc, solve_small(A, [-dot(row, qacc) for row in B]), strict=True)]


def _turning_drag(model: Model, smooth: Smooth, body: int) -> Iterator[tuple[At, Number]]:
  """Yield the antisymmetric part of the fluid's damping of a lone free body and of bodies welded to it."""
  for each in ellipsoids(model, smooth.poses, smooth.velocity):
    if model.body_weldid[each.body] == body:
      yield from each.damping(model, smooth.poses, skew=True)


def solve_small(A: list[list[Number]], b: list[Number]) -> list[Number]:
  """Return A^-1 b by elimination without pivoting: A [n, n] is nearly symmetric and positive definite."""
  A, x, n = [list(row) for row in A], list(b), len(b)
  for k in range(n):
    inverse = 1.0 / A[k][k]
    for i in range(k + 1, n):
      factor = A[i][k] * inverse
      A[i][k + 1 :] = [a - factor * c for a, c in zip(A[i][k + 1 :], A[k][k + 1 :], strict=True)]
      x[i] = x[i] - factor * x[k]
  for k in reversed(range(n)):
    x[k] = (x[k] - dot(A[k][k + 1 :], x[k + 1 :])) / A[k][k]
  return x


def integrate_position(model: Model, qpos: list[Number], qvel: list[Number]) -> list[Number]:
  """Return the position [nq] after one time step at constant velocity (MuJoCo's `mj_integratePos`)."""
  h = model.timestep
  program = repeating(qpos)
  result, qvel = numbers(program, model.nq), stored(program, qvel)
  for joint in (joint for body in bodies(model, program) for joint in joints(model, body)):
    at, dof = follow(model.jnt_qposadr, joint), follow(model.jnt_dofadr, joint)
    kind = alike(model.jnt_type, joint)
    if kind == FREE:
      for k in range(3):
        result[at + k] = qpos[at + k] + h * qvel[dof + k]
      at, dof = at + 3, dof + 3
    if kind in (FREE, BALL):
      turn, rate = [qpos[at + k] for k in range(4)], Vector(*(qvel[dof + k] for k in range(3)))
      for k, component in enumerate(_rotate(turn, rate, h)):
        result[at + k] = component
    else:
      result[at] = qpos[at] + h * qvel[dof]
  return result


def _rotate(components: list[Number], velocity: Vector, h: float) -> list[Number]:
  """Return the unit quaternion after turning for a time h [s] at a velocity [rad/s] in body axes."""
  square = dot(velocity, velocity)
  still = square < 1e-24
  speed = sqrt(where(still, 1.0, square))
  half = speed * (0.5 * h)
  sine_over_speed = where(still, 0.5 * h, sin(half) / speed)
  turn = Quaternion(where(still, 1.0, cos(half)), velocity * sine_over_speed)
  return list(Quaternion.normalize((Quaternion.normalize(components) * turn).components).components)
