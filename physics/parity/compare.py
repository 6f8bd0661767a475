"""Agreement with MuJoCo C on three levels: stages from equal states, single steps, open-loop rollouts.

The levels follow MuJoCo's own guide (`mujoco/doc/skills/parity`). Each state has a bound for its error.
The bound is wider where a change of state and constants by one unit in the last place already changes the
result of MuJoCo C by more.
"""

import dataclasses
from collections.abc import Callable
from functools import cached_property, partial
from typing import Any

import numpy as np

from physics.actuator.transmission import adhesive_bodies
from physics.collision.geometry import HFIELD
from physics.collision.narrow import is_searched
from physics.constraint.params import has_adhesion
from physics.model.model import Bools, Floats, Ints, Model
from physics.parity.contacts import (
  contact_errors,
  marginal,
  mujoco_contacts,
  nearly_coincident,
  one_point,
  other_corners,
  other_faces,
  traced_contacts,
)
from physics.parity.finding import Finding
from physics.parity.given_contacts import INTEGRATORS
from physics.parity.reference import (
  STAGES,
  STEP,
  PipelineResults,
  converging,
  known_contacts,
  merged,
  one_ulp_effect,
  perturbed,
  perturbed_states,
  reference,
  relative_error,
  searching_effect,
  sweeping_effect,
  wrapping_error,
)
from physics.parity.separations import right_contacts
from physics.parity.states import States
from physics.state.layout import field_shapes

Find = Callable[[States], list[Floats]]  # a kernel's contacts in each state, see `traced_contacts`
SMOOTH = ("xpos", "xquat", "qM", "qfrc_bias", "qfrc_passive", "qfrc_actuator")
PULLED = ("qfrc_passive", "qfrc_actuator", "qacc_smooth")  # where geoms or actuators have adhesion
COUNTERS = ("contact_count", "overflow", "solver_niter")
# quantities of findings: the shares of states in which contacts differ
STATES_OPEN, OTHER_CORNERS, GIVEN = "states left open", "with other corners", "with given contacts"


@dataclasses.dataclass(frozen=True)
class Tolerances:
  """The error bounds of one kind of arithmetic, relative to the larger of 1 and the reference's magnitude."""

  dtype: type[np.floating]
  smooth: float  # poses, inertia and forces that no constraint enters
  solved: float  # accelerations, constraint forces and their results
  median: float  # of the solved ones, the median over the states
  distance: float  # of contacts [m]
  grazing: float  # distance [m] from its margin up to which rounding decides about a searched contact
  position: float  # of contacts [m]
  rounding: float  # times the change that one unit in the last place makes in MuJoCo C
  searched: float  # accelerations and constraint forces where contacts are searched, or noslip is used


DOUBLE = Tolerances(np.float64, 1e-9, 1e-9, 1e-9, 1e-9, 1e-9, 1e-9, rounding=30.0, searched=1e-3)
SINGLE = Tolerances(np.float32, 1e-5, 1e-4, 1e-6, 1e-5, 3e-6, 1e-4, rounding=3.0, searched=1e-2)
# Where contacts are searched, both searches end within a tolerance, and each takes four of more corners.
# Where noslip sweeps over redundant contacts, its forces depend on their order, by as much.
SEARCHED_MEDIAN = 0.01  # the median error in the other states, relative to the largest
SEARCHED_CONTACT = (1e-5, 1e-4, 1e-3)  # distance [m], position [m], normal
SWEEPING = 5.0  # times the change that the last half of the sweeps makes
SEARCHING = 5.0  # times the change that the last digits of a search make
OPEN = 0.05  # the largest share of states that are left open, if it is more than one
OTHERS = 0.5  # the largest share of states in which other corners, or other faces, are contacts


def outputs(model: Model) -> tuple[str, ...]:
  """Return the outputs that a simulation has to compute for a comparison."""
  shapes = field_shapes(model)
  return tuple(name for name in (*STAGES, *COUNTERS) if name in shapes)


def searches(model: Model) -> bool:
  """Return whether contacts of a model are searched."""
  return any(is_searched(model, pair) for pair in model.pairs)


class Trial:
  """A model in some states, MuJoCo's results there, and the changes that one ulp makes in them."""

  def __init__(self, model: Model, states: States, find: Find | None = None) -> None:
    self.model, self.states, self._find = model, states, find
    self._rounding: dict[type[np.floating], PipelineResults] = {}
    self._contacts: dict[type[np.floating], list[Floats]] = {}
    self._alike: dict[type[np.floating], Bools] = {}
    self._others: dict[type[np.floating], Bools] = {}
    self._given: dict[type[np.floating], Bools] = {}
    self._expected: dict[type[np.floating], PipelineResults] = {}

  @cached_property
  def expected(self) -> PipelineResults:
    """MuJoCo's results."""
    return reference(self.model, self.states)

  def expected_in(self, tolerances: Tolerances) -> PipelineResults:
    """Return MuJoCo's results, from the engine's contacts in the states where those are `given`."""
    dtype, given = tolerances.dtype, self.given(tolerances)
    if dtype not in self._expected:
      self._expected[dtype] = self.expected
      if given.any():
        own = reference(self.model, self.states[given], self._given_contacts(tolerances))
        self._expected[dtype] = merged(self.expected, own, given)
    return self._expected[dtype]

  def rounding(self, tolerances: Tolerances) -> PipelineResults:
    """Return the relative change that one unit in the last place makes in `expected_in`, per state."""
    dtype, given = tolerances.dtype, self.given(tolerances)
    if dtype not in self._rounding:
      effect = one_ulp_effect(self.model, self.states, dtype)
      if given.any():
        contacts = self._given_contacts(tolerances)
        own = one_ulp_effect(self.model, self.states[given], dtype, contacts=contacts)
        effect = merged(effect, own, given)
      self._rounding[dtype] = effect
    return self._rounding[dtype]

  def rounding_bound(self, name: str, tolerances: Tolerances) -> Floats:
    """Return the error [num_states] of a quantity that rounding can explain."""
    return tolerances.rounding * np.asarray(getattr(self.rounding(tolerances), name))

  @cached_property
  def expected_contacts(self) -> list[Floats]:
    """The contacts that MuJoCo finds, see `mujoco_contacts`."""
    return mujoco_contacts(converging(self.model.mj), self.states)

  def found_contacts(self, dtype: type[np.floating]) -> list[Floats]:
    """Return the contacts that the engine finds, see `traced_contacts`."""
    if dtype not in self._contacts:
      by_numpy = partial(traced_contacts, self.model, dtype=dtype)
      find = self._find if self._find and dtype != np.float64 else by_numpy
      self._contacts[dtype] = find(self.states)
    return self._contacts[dtype]

  @cached_property
  def sweeping(self) -> PipelineResults:
    """The change that more sweeps of noslip make in the results, per state."""
    return sweeping_effect(self.model, self.states)

  @cached_property
  def searching(self) -> PipelineResults:
    """The change that less precise searches for contacts make in the results, per state."""
    return searching_effect(self.model, self.states)

  @cached_property
  def _one_point(self) -> Model:
    return one_point(self.model)

  @cached_property
  def searches(self) -> bool:
    """Whether contacts of the model are searched."""
    return searches(self.model)

  @cached_property
  def mujoco_searches(self) -> bool:
    """Whether MuJoCo searches for contacts: it does for all shapes on a height field."""
    return self.searches or any(self.model.geom_type[pair.geom1] == HFIELD for pair in self.model.pairs)

  def alike(self, tolerances: Tolerances) -> Bools:
    """Return in which states [num_states] the engines find the same contacts, as far as searches can tell.

    A contact that one of them alone finds counts, however shallow it is: forces do not begin at zero where
    shapes touch. If NumPy finds the contacts in float32, states in which rounding decides are not among them.
    """
    dtype = tolerances.dtype
    if dtype not in self._alike:
      alike = ~nearly_coincident(self.model.mj, self.states)
      if self.searches:
        error = contact_errors(self.found_contacts(dtype), self.expected_contacts, 0.0)
        alike &= (error <= np.array(SEARCHED_CONTACT)[:, None]).all(axis=0)
        if dtype != np.float64:
          alike &= self._decided(tolerances)
      elif dtype == np.float64 and self.model.pairs and self.model.mj.opt.integrator in INTEGRATORS:
        alike &= ~self._has_others_by_formula(tolerances)
      self._alike[dtype] = alike
    return self._alike[dtype]

  def _has_others_by_formula(self, tolerances: Tolerances) -> Bools:
    """Return in which states [num_states] formulas give other contacts than MuJoCo C's, both being right."""
    error = contact_errors(self.found_contacts(tolerances.dtype), self.expected_contacts, 0.0)
    others: Bools = np.any(error > np.array(SEARCHED_CONTACT)[:, None], axis=0)
    if others.any():
      others[others] = self._can_be_given(np.flatnonzero(others), tolerances)
    return others

  def _decided(self, tolerances: Tolerances) -> Bools:
    """Return in which states [num_states] rounding decides neither about a contact nor about its normal."""
    decided = ~nearly_coincident(self.model.mj, self.states)
    if self.searches and not self._find:
      decided &= ~marginal(self.model.mj, self.states, tolerances.grazing)
    return decided

  def others(self, tolerances: Tolerances) -> Bools:
    """Return in which states [num_states] other corners or faces are contacts that the same search found."""
    dtype = tolerances.dtype
    if dtype not in self._others:
      others = ~self.alike(tolerances) & self._decided(tolerances)
      rows = np.flatnonzero(others)
      if len(rows):
        found, expected, ours, theirs = self._choices(rows, tolerances)
        others[rows] = other_corners(found, expected, SEARCHED_CONTACT)
        others[rows] |= other_faces(found, ours, theirs, SEARCHED_CONTACT)
      self._others[dtype] = others
    return self._others[dtype]

  def given(self, tolerances: Tolerances) -> Bools:
    """Return in which states [num_states] contacts differ, and MuJoCo C computes the effects of the engine's.

    They are right by the shapes alone, see `right_contacts`. NumPy's contacts in float32 have to be the same
    as in float64: a kernel rounds otherwise, and may choose others.
    """
    dtype = tolerances.dtype
    if dtype not in self._given:
      given = ~self.alike(tolerances) & ~nearly_coincident(self.model.mj, self.states)
      if dtype != np.float64:
        given &= self._decided(tolerances)
      if self.model.mj.opt.integrator not in INTEGRATORS:
        given[:] = False  # such an integrator finds contacts several times per step
      if given.any():
        given[given] = self._can_be_given(np.flatnonzero(given), tolerances)
      self._given[dtype] = given
    return self._given[dtype]

  def _can_be_given(self, rows: Ints, tolerances: Tolerances) -> Bools:
    states, contacts = self.states[rows], self._choices(rows, tolerances)
    found, bounds = contacts[0], np.array([*SEARCHED_CONTACT, tolerances.grazing])
    known = right_contacts(self.model, states, contacts, bounds) & known_contacts(self.model, states, found)
    if tolerances.dtype != np.float64 and not self._find:
      exact = [self.found_contacts(np.float64)[row] for row in rows]
      known &= (contact_errors(found, exact, 0.0) <= np.array(SEARCHED_CONTACT)[:, None]).all(axis=0)
    return known

  def _choices(self, rows: Ints, tolerances: Tolerances) -> tuple[list[Floats], ...]:
    """Return the contacts of some states: found and expected, and both where shapes have one contact each.

    The latter are in float64: the right contacts, not a kernel's.
    """
    states, model = self.states[rows], self._one_point
    every = self.found_contacts(tolerances.dtype), self.expected_contacts
    found, expected = ([contacts[row] for row in rows] for contacts in every)
    searched = traced_contacts(model, states), mujoco_contacts(converging(model.mj), states)
    return found, expected, *searched

  def _given_contacts(self, tolerances: Tolerances) -> list[Floats]:
    found = self.found_contacts(tolerances.dtype)
    return [found[row] for row in np.flatnonzero(self.given(tolerances))]

  def compared(self, tolerances: Tolerances) -> Bools:
    """Return in which states [num_states] the effects of contacts are compared."""
    return self.alike(tolerances) | self.given(tolerances)

  def _left_out(self, tolerances: Tolerances) -> list[Finding]:
    """Return the share of states that are left out, of a model that has such states."""
    alike = self.alike(tolerances)
    if not self.searches and alike.all():
      return []
    others, given = self.others(tolerances), self.given(tolerances)
    shares = (
      (GIVEN, given.mean(), 1.0),
      (OTHER_CORNERS, (others & ~given).mean(), OTHERS),
      (STATES_OPEN, 1.0 - (alike | others | given).mean(), max(OPEN, 1.0 / len(alike))),
    )
    return [Finding(name, np.array([share]), np.array([most])) for name, share, most in shares]

  def stages(self, simulation: Any, tolerances: Tolerances) -> list[Finding]:
    """Compare every stage of the pipeline, from the same states, one per environment."""
    self._start(simulation)
    simulation.forward()
    findings, results = [], self.expected_in(tolerances)
    moving = self.model.body_treeid >= 0  # the engine does not compute forces on static bodies
    for name in STAGES:
      is_there = name in simulation.layout and getattr(results, name)[0].size
      if is_there and self._compares(name, tolerances):
        found, expected = _numbers(simulation, name), getattr(results, name)
        if name == "cfrc_ext":
          found, expected = found[:, moving], expected[:, moving]
        findings.append(self._finding(name, relative_error(found, expected), tolerances))
    dropped = _numbers(simulation, "overflow")
    return [*findings, Finding("overflow", dropped, np.zeros(len(dropped)))]

  def step(self, simulation: Any, tolerances: Tolerances) -> list[Finding]:
    """Compare the state after one step from each of the states."""
    self._start(simulation)
    simulation.step()
    findings, results = [], self.expected_in(tolerances)
    for name in STEP:
      if getattr(results, name)[0].size and self._compares(name, tolerances):
        error = relative_error(_numbers(simulation, name), getattr(results, name))
        findings.append(self._finding(name, error, tolerances, f"next {name}"))
    return findings + (self._left_out(tolerances) if self.searches else [])

  def contacts(self, tolerances: Tolerances) -> list[Finding]:
    """Compare the contact points."""
    if not self.model.pairs:
      return []
    if not self.alike(tolerances).any():
      return self._left_out(tolerances)
    found, expected = self.found_contacts(tolerances.dtype), self.expected_contacts
    error = contact_errors(found, expected, tolerances.distance)
    bounds = [tolerances.distance, tolerances.position]
    if self.searches:
      bounds = [max(pair) for pair in zip(bounds, SEARCHED_CONTACT, strict=False)]
    alike = self.alike(tolerances)
    findings = [
      Finding(f"contact {name}", values, np.full(len(values), bound))
      for name, values, bound in zip(("distance", "position"), error, bounds, strict=False)
    ]
    if not all(finding.at(alike).holds for finding in findings):
      rounding = tolerances.rounding * self._contact_rounding(tolerances.dtype)
      findings = [
        dataclasses.replace(finding, bound=np.maximum(finding.bound, rounding[i]))
        for i, finding in enumerate(findings)
      ]
    return [finding.at(alike) for finding in findings] + self._left_out(tolerances)

  def _contact_rounding(self, dtype: type[np.floating], draws: int = 8) -> Floats:
    random = np.random.default_rng(0)
    effects = []
    for _ in range(draws):
      mj = perturbed(self.model.mj, random, dtype)
      states = perturbed_states(self.model, self.states, random, dtype)
      effects.append(contact_errors(mujoco_contacts(mj, states), self.expected_contacts, 0.0))
    return np.max(effects, axis=0)

  def _start(self, simulation: Any) -> None:
    simulation.reset()
    self.states.write_to(simulation)

  def _compares(self, name: str, tolerances: Tolerances) -> bool:
    """Return whether a quantity can be compared: contacts do not enter it, or are alike in some state."""
    return not self._feels_contacts(name) or bool(self.compared(tolerances).any())

  def _feels_contacts(self, name: str) -> bool:
    """Return whether contacts enter a quantity, as they enter forces that pull along their normals."""
    if name in PULLED:
      return has_adhesion(self.model) or bool(adhesive_bodies(self.model))
    return name not in SMOOTH

  def _finding(self, name: str, error: Floats, tolerances: Tolerances, quantity: str = "") -> Finding:
    compared = self.compared(tolerances)
    least = tolerances.smooth if name in SMOOTH else tolerances.solved
    typical = tolerances.smooth if name in (*SMOOTH, "qacc_smooth") else tolerances.median
    least, typical = (max(bound, wrapping_error(self.model)) for bound in (least, typical))
    is_constrained, sweeps = self._feels_contacts(name), self.model.noslip_iterations
    if (self.searches or sweeps) and is_constrained:
      least, typical = max(least, tolerances.searched), max(typical, SEARCHED_MEDIAN * tolerances.searched)
    finding = Finding(quantity or name, error, np.full(len(error), least), typical)
    if finding.at(compared).holds:
      return finding.at(compared)  # the effect of rounding takes long to compute
    rounding = self.rounding_bound(name, tolerances)
    if sweeps and is_constrained:
      rounding = np.maximum(rounding, SWEEPING * getattr(self.sweeping, name))
    if self.mujoco_searches and is_constrained:
      rounding = np.maximum(rounding, SEARCHING * getattr(self.searching, name) * ~self.given(tolerances))
    median = max(typical, float(np.median(rounding)))
    return dataclasses.replace(finding, bound=np.maximum(least, rounding), median=median).at(compared)


def _numbers(simulation: Any, name: str) -> Floats:
  """Return a copy of a field: in float64 its tensor is the simulation's own memory."""
  return getattr(simulation, name).double().cpu().numpy().copy()
