"""Varied fields: numbers of the model that differ between environments, and the constants they determine.

A varied field is a block of parameters `[row, env]` that the user writes. A separate program computes what
MuJoCo's compiler would derive from it, inverse weights and constants of contacts, into further blocks. It
runs before every step, stores the numbers that it derived from, and does nothing where they have not changed.
The step reads both kinds of blocks instead of the model's constants.
"""

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from physics.actuator.muscle import unit_accelerations
from physics.constraint.params import contact_params
from physics.dynamics.inverse_weight import inverse_weights
from physics.model.model import Model
from physics.model.pairs import pair_parameters
from physics.state.layout import Block
from physics.trace.trace import Program, Scalar, Truth, negate
from physics.vary.variable import INERTIAL, OF_PAIRS

PARAMS = "contact_params"
SOURCES = "derived_from"  # the numbers that the other derived blocks were computed from; nan: none yet


class Variation:
  """The parameters of a model with varied fields, and the program that derives some from others.

  Attributes:
    blocks: rows of the parameter memory by field: the varied ones, then the derived ones.
    rows: number of rows of all blocks.
    program: computes the derived blocks of the array `parameters` where the varied ones have changed; None
      if there are none.
  """

  def __init__(self, model: Model) -> None:
    self.model = model
    self.blocks: dict[str, Block] = {}
    self.rows = 0
    for name in model.varied:
      self._reserve(name, getattr(model, name).shape)
    self.param_fields: list[str] = []
    sources = [name for name in model.varied if name in {*INERTIAL, *OF_PAIRS}]
    self.program = self._derive(sources) if sources else None

  def model_in(self, program: Program) -> Model:
    """Return the model with parameters that a program reads instead of constants."""
    fields = {name: self._read(program, name) for name in self.blocks if name not in (PARAMS, SOURCES)}
    model = dataclasses.replace(self.model, **fields)
    if PARAMS not in self.blocks:
      return model
    rows, pairs = self._read(program, PARAMS), []
    for pair, row in zip(model.pairs, rows, strict=True):
      params, own = contact_params(self.model, pair), dict(zip(self.param_fields, row, strict=True))
      params = {name: own.get(name, value) for name, value in params.items()}
      pairs.append(dataclasses.replace(pair, params=params))
    return dataclasses.replace(model, pairs=tuple(pairs))

  def _reserve(self, name: str, shape: tuple[int, ...]) -> None:
    self.blocks[name] = Block(self.rows, shape)
    self.rows += self.blocks[name].rows

  def _read(self, program: Program, name: str) -> Any:
    block = self.blocks[name]
    numbers = np.empty(block.rows, object)
    numbers[:] = [program.read_parameter(block.start + i) for i in range(block.rows)]
    return numbers.reshape(block.shape)

  def _derive(self, names: Sequence[str]) -> Program:
    """Return the program that derives constants from these fields; reserve blocks for them."""
    program = Program()
    sources = {name: self._read(program, name) for name in names}
    model = dataclasses.replace(self.model, **sources)
    with program.when_any(self._changed(program, sources)):
      if sources.keys() & set(INERTIAL):
        constants = inverse_weights(model) | unit_accelerations(model)
        model = dataclasses.replace(model, **constants)
        for name, values in constants.items():
          self._reserve(name, values.shape)
          self._write(program, name, values.ravel())
      self._derive_params(program, model)
    return program.finish()

  def _changed(self, program: Program, sources: Mapping[str, Any]) -> Truth:
    """Return where the numbers have changed since the last derivation, and store them; nan is a change."""
    numbers = [number for values in sources.values() for number in values.ravel()]
    self._reserve(SOURCES, (len(numbers),))
    same: Truth = True
    for number, last in zip(numbers, self._read(program, SOURCES), strict=True):
      same = same & (number <= last) & (last <= number)
    self._write(program, SOURCES, numbers)
    return negate(same)

  def _derive_params(self, program: Program, model: Model) -> None:
    pairs = [
      dataclasses.replace(q, **pair_parameters(model, (q.geom1, q.geom2), q.explicit)) for q in model.pairs
    ]
    params = [contact_params(model, pair) for pair in pairs]
    varied = {name for each in params for name, value in each.items() if isinstance(value, Scalar)}
    self.param_fields = sorted(varied)
    if self.param_fields:
      self._reserve(PARAMS, (len(params), len(self.param_fields)))
      self._write(program, PARAMS, [each.get(name, 0.0) for each in params for name in self.param_fields])

  def _write(self, program: Program, name: str, values: Sequence[Any]) -> None:
    for i, value in enumerate(values):
      program.write_memory("parameters", self.blocks[name].start + i, value)
