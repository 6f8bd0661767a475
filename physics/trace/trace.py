"""The tracer: Python arithmetic on `Scalar`s records a straight-line program with loops and guarded blocks.

A program runs for one *lane group*: a fixed number of environments side by side, one per lane (16 on a CPU
core, 1 in a CUDA thread, all of them in the NumPy oracle). `Scalar`, `Mask` and `Word` hold one value per
lane; `Index` holds one integer for the whole group and steers loops and addresses. Model constants are Python
floats: they fold while tracing (`0 * x`, `1 * x`, `x + 0`). Equal expressions are shared, and
`Program.finish` drops values that nothing reads.

Python code cannot use the value of a traced number. These raise a TypeError: `if`, `while`, `and`, `or`,
`not`, a chain like `0 < x < 1`, `==`, `!=`, `in`, a key of a dict, `min`, `max`, `sorted`, `abs`, `range(i)`,
`values[i]`, `float(x)`, the functions of `math` and NumPy. Write `where(mask, a, b)` for a choice,
`program.when_any(mask)` for a block that some lanes need, `&`, `|` and `~` between masks, and `minimum`,
`maximum`, `absolute` and the other functions below. For an `Index`, write `program.when_equal` and
`program.when_less` for a block, `program.loop` for `range`, and `program.table` for a list.

A value is known only in the block that computes it: to use it after the block has ended raises a NameError.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from numbers import Integral
from typing import Any, TypeVar, cast

from physics.trace.farthest import Clusters
from physics.trace.functions import (  # noqa: F401 (one vocabulary)
  absolute,
  atan2,
  clip,
  cos,
  exp,
  floor,
  has_bit,
  is_finite,
  is_zero,
  maximum,
  minimum,
  negate,
  number,
  power,
  sin,
  sqrt,
  square,
  where,
)
from physics.trace.statement import Statement, Value, prune, values_read, walk
from physics.trace.value import Index, Integer, Mask, Number, Parameter, Scalar, Truth, Word

T = TypeVar("T")


class Array:
  """Group-local memory: `size` values of one kind, addressed by an int or an `Index`; unset until written.

  A group of one lane uses no more than the first `alone` of them.
  """

  def __init__(
    self, program: "Program", name: str, size: int, kind: type[Value], alone: int | None = None
  ) -> None:
    self.program, self.name, self.size, self.kind = program, name, size, kind
    self.alone = size if alone is None else alone
    self.version = 0

  def __len__(self) -> int:
    return self.size

  def __getitem__(self, index: Integer | slice) -> Any:
    if isinstance(index, slice):
      return [self[i] for i in range(*index.indices(self.size))]
    return self.program.load(self, self._within(index))

  def __setitem__(self, index: Integer, value: object) -> None:
    self.program.store(self, self._within(index), value)

  def take(self, index: Number, lane: Number | None = None) -> Any:
    """Return the element at each lane's own index, a whole number; beyond an end it is that end.

    `lane` gives each lane the number of another one to read from.
    """
    return self.program.take(self, index, lane)

  def put(self, index: Number, value: Number, mask: Truth, lane: Number | None = None) -> None:
    """Write a value at each lane's own index, in the lanes where the mask holds; it must lie within.

    `lane` gives each lane the number of another one to write for; no two write at the same place.
    """
    self.program.put(self, index, value, mask, lane)

  def fill(self, values: "Sequence[object] | Array") -> None:
    """Write the values from the first element on."""
    if isinstance(values, Array) and self.program.repeats:
      with self.program.loop(len(values)) as each:
        self[each] = values[each]
      return
    for i, value in enumerate(cast(Sequence[object], values)):
      self[i] = value

  def read(self, start: Integer = 0, count: int | None = None) -> list[Any]:
    """Return `count` consecutive values (default: all)."""
    return [self[start + i] for i in range(self.size if count is None else count)]

  def values(self) -> Any:
    """Return all values: a list of the present ones, or the array itself in a program that repeats."""
    return self if self.program.repeats else self.read()

  def _within(self, index: Any) -> Integer:
    """Raise IndexError for an int beyond the end, which also ends a `for` over the array."""
    if isinstance(index, Integral):
      index = int(index)  # also one of NumPy's
      if not 0 <= index < self.size:
        raise IndexError(f"{index} is not in an array of {self.size}")
    return index


class Program:
  """A traced program: records statements in the current block, the innermost open loop or guard.

  One that `repeats` keeps lists in arrays, and has loops over alike elements (`physics/trace/each.py`).
  """

  def __init__(self, repeats: bool = False) -> None:
    self.repeats = repeats
    self.body: list[Statement] = []
    self.arrays: list[Array] = []
    self.tables: dict[tuple, str] = {}
    self._tuples: dict[tuple[int, bool], tuple[tuple, tuple[str, float | None]]] = {}
    self.parameters: list[str] = []
    self._blocks = [Statement("program", body=self.body)]  # the open blocks
    self._shared: list[dict[tuple, Any]] = [{}]
    self._counter = 0

  @property
  def block(self) -> Statement:
    """The current block."""
    return self._blocks[-1]

  # -- values

  def name(self, prefix: str = "t") -> str:
    """Return a fresh name."""
    self._counter += 1
    return f"{prefix}{self._counter}"

  def op(self, op: str, kind: type[Value], *args: object) -> Any:
    """Record (or share) an operation and return its result."""
    return self._define("op", op, kind, args, (op, *map(_key, args)))

  def once(self, key: tuple, compute: Callable[[], T]) -> T:
    """Return the value computed for a key in this block or an enclosing one; else compute it here.

    So no value is computed again where it is known, and none is taken from a block that has ended.
    """
    for scope in self._shared:
      if key in scope:
        return scope[key]
    self._shared[-1][key] = value = compute()
    return value

  def parameter(self, name: str) -> Index:
    """Declare a launch parameter: an integer equal for all lanes."""
    self.parameters.append(name)
    return Index(self, name)

  def array(
    self, size: int, kind: type[Value] = Scalar, prefix: str = "a", alone: int | None = None
  ) -> Array:
    """Declare group-local memory."""
    array = Array(self, self.name(prefix), size, kind, alone)
    self.arrays.append(array)
    return array

  def variable(self, value: object, kind: type[Value] = Scalar) -> Array:
    """Declare one mutable value: read and written as `variable[0]`."""
    variable = self.array(1, kind, "v")
    variable[0] = value
    return variable

  def table(self, values: Sequence[float] | Sequence[int], index: Integer | Number) -> Any:
    """Read an entry of a constant table [n]; an all-equal table folds away.

    At an int or `Index`, floats give a `Scalar` and integers an `Index`. At a float or `Scalar` that holds a
    whole number, every lane reads its own entry; beyond an end it reads that end.
    """
    integral = all(isinstance(v, int | Integral) for v in values) and not isinstance(index, Scalar | float)
    if not isinstance(index, Value):
      return int(values[int(index)]) if integral else float(values[int(index)])
    name, only = self._table_of(values, integral)
    if only is not None:
      return only
    if isinstance(index, Scalar):
      return self._define("gather", name, Scalar, (index, len(values)), ("gather", name, _key(index)))
    return self._define("table", name, Index if integral else Scalar, (index,), (name, _key(index)))

  def words(self, values: Sequence[int], index: Scalar) -> Any:
    """Read each lane's own entry of a constant table [n] of bits; an all-equal table folds away."""
    name, only = self._table_of(values, integral=True)
    if only is not None:
      return int(only)
    return self._define("gather", name, Word, (index, len(values)), ("gather", name, _key(index)))

  def farthest(
    self, clusters: Clusters, hull: Integer | Number, direction: Sequence[Number], lanes: Truth
  ) -> Any:
    """Return the number of a hull's farthest vertex along a unit vector, in the lanes that ask for it."""
    columns = (*clusters.vertices, clusters.numbers, clusters.starts, *clusters.spheres)
    names = tuple(self._table_name(column) for column in columns)
    key = ("farthest", names, *map(_key, (hull, *direction, lanes)))
    return self._define("farthest", "", Scalar, (names, hull, *direction, lanes), key)

  def _table_name(self, values: tuple[float, ...] | tuple[int, ...]) -> str:
    """Return the name of a constant table, even if all its entries are equal."""
    return self.tables.setdefault((isinstance(values[0], int), values), f"table{len(self.tables)}")

  def _table_of(self, values: Sequence[float] | Sequence[int], integral: bool) -> tuple[str, float | None]:
    """Return the name of a constant table, and its only value if all are equal.

    A tuple is examined only once: the elevations of a height field are many, and many statements read them.
    """
    key = id(values), integral
    if key in self._tuples:
      return self._tuples[key][1]
    entries = tuple(int(v) for v in values) if integral else tuple(float(v) for v in values)
    only = entries[0] if len(set(entries)) == 1 else None
    name = "" if only is not None else self.tables.setdefault((integral, entries), f"table{len(self.tables)}")
    if isinstance(values, tuple):
      self._tuples[key] = values, (name, only)  # kept alive, so its id stays unique
    return name, only

  def load(self, array: Array, index: Integer) -> Any:
    """Read group-local memory."""
    return self._define(
      "load", array.name, array.kind, (index,), ("load", array.name, array.version, _key(index))
    )

  def store(self, array: Array, index: Integer, value: object) -> None:
    """Write group-local memory."""
    array.version += 1
    self.statement("store", array.name, args=(index, value, array.kind))

  def take(self, array: Array, index: Number, lane: Number | None = None) -> Any:
    """Read group-local memory, of the own or another lane, at each lane's own index."""
    key = ("take", array.name, array.version, _key(index), _key(lane))
    return self._define("take", array.name, Scalar, (index, len(array), lane), key)

  def put(self, array: Array, index: Number, value: Number, mask: Truth, lane: Number | None = None) -> None:
    """Write group-local memory, of the own or another lane, at each lane's own index."""
    array.version += 1
    self.statement("put", array.name, args=(index, len(array), value, mask, lane))

  @property
  def lane(self) -> Scalar:
    """The number of each lane of the group."""
    return self._define("lane", "", Scalar, (), ("lane",))  # type: ignore[return-value]

  def read_memory(self, memory: str, row: Integer) -> Scalar:
    """Read this group's floats of one row of an argument array `[row, env]`."""
    result = Scalar(self, self.name())
    self.statement("read", memory, result, (row,))
    return result

  def read_parameter(self, row: int) -> Parameter:
    """Read a row of the array `parameters`."""
    result = Parameter(self, self.name())
    result.row = row
    self.statement("read", "parameters", result, (row,))
    return result

  def write_memory(
    self, memory: str, row: Integer, value: Number, mask: Truth = True, integer: bool = False
  ) -> None:
    """Write a row of an argument array where the mask holds: a float, or (`integer`) the bits of an int32."""
    self.statement("write", memory, args=(row, value, mask, integer))

  def fetch(self, kind: type[Value], memory: int, offset: int, stride: int) -> Value:
    """Read a number of a kind, so far from a memory's address, and further for each environment [bytes]."""
    place = memory, offset, stride
    return self._define("fetch", "", kind, place, ("fetch", kind.__name__, *place))

  def keep(self, memory: int, offset: int, stride: int, value: Value) -> None:
    """Write a number at a place as `fetch` has it."""
    self.statement("keep", args=(memory, offset, stride, value))

  # -- blocks

  @contextmanager
  def loop(self, count: Integer, start: Integer = 0) -> Iterator[Index]:
    """Repeat the block for `index` in `range(start, count)`."""
    index = Index(self, self.name("i"))
    with self._block(Statement("for", result=index, args=(start, count))):
      yield index

  @contextmanager
  def each_value(self, value: Number, mask: Truth) -> Iterator[tuple[Integer, Truth]]:
    """Repeat the block for each whole number that some lane has where the mask holds: it, and those lanes.

    Lanes with equal numbers share the block. There the number is the group's, so it may steer addresses.
    """
    if isinstance(value, Scalar):
      index = Index(self, self.name("i"))
      with self._block(Statement("for_value", result=index, args=(value, mask))):
        yield index, self.same(value, index) & mask
    else:
      with self.when_any(mask):
        yield int(value), mask

  def same(self, value: Scalar, index: Index) -> Mask:
    """Return the lanes with the group's whole number."""
    return self.op("is", Mask, value, index)

  @contextmanager
  def when_any(self, mask: Truth) -> Iterator[None]:
    """Run the block, in all lanes, if the mask holds in any lane."""
    if mask is True:
      yield
      return
    with self._block(Statement("when_any", args=(mask,))):
      yield

  @contextmanager
  def when_equal(self, a: Integer, b: Integer) -> Iterator[None]:
    """Run the block if two group integers are equal."""
    with self._block(Statement("when_equal", args=(a, b))):
      yield

  @contextmanager
  def when_less(self, a: Integer, b: Integer) -> Iterator[None]:
    """Run the block if one group integer is less than another."""
    with self._block(Statement("when_less", args=(a, b))):
      yield

  def break_if_none(self, mask: Truth) -> None:
    """Leave the innermost loop if the mask holds in no lane."""
    self.statement("break_if_none", args=(mask,))

  def statement(
    self, kind: str, op: str = "", result: Value | None = None, args: tuple[Any, ...] = ()
  ) -> None:
    """Record a statement in the current block."""
    self._record(Statement(kind, op, result, args))

  # -- the end

  def finish(self) -> "Program":
    """Drop values that nothing reads; return self."""
    read = prune(self.body)
    self.arrays = [array for array in self.arrays if array.name in read]
    return self

  def count_operations(self) -> int:
    """Return the number of recorded floating-point and mask operations (static: loops count once)."""
    return sum(statement.kind == "op" for statement in walk(self.body))

  def _define(self, kind: str, op: str, result: type[Value], args: tuple[object, ...], key: tuple) -> Value:
    def define() -> Value:
      value = result(self, self.name())
      self.statement(kind, op, value, args)
      return value

    return self.once(key, define)

  def _record(self, statement: Statement) -> None:
    """Add a statement to the current block; NameError where it reads a value that is not known there."""
    for value in values_read(statement.args):
      if value.block not in self._blocks:
        words = "compute it before that block, or keep it in a program.variable"
        raise NameError(f"{value.name} was computed in a block '{value.block.kind}' that has ended; {words}")
    self.block.body.append(statement)

  @contextmanager
  def _block(self, statement: Statement) -> Iterator[None]:
    self._record(statement)
    self._blocks.append(statement)
    if statement.result is not None:
      statement.result.block = statement  # a loop's index is known inside
    self._shared.append({})
    self._forget_loads()
    yield
    self._forget_loads()
    self._shared.pop()
    self._blocks.pop()

  def _forget_loads(self) -> None:
    for array in self.arrays:
      array.version += 1


def _key(arg: object) -> object:
  return arg.name if isinstance(arg, Value) else (type(arg).__name__, repr(arg))
