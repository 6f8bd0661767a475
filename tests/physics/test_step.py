import gc

import pytest

from physics.load import load_model
from physics.state.layout import Layout
from physics.step import trace_step
from tests.physics.arm import arm


@pytest.fixture
def collections():
  """The garbage collections of a test, of which many look at few objects."""
  found, thresholds = [], gc.get_threshold()

  def remember(phase, _):
    found.append(phase)

  gc.callbacks.append(remember)
  gc.set_threshold(10, 100_000)
  yield found
  gc.set_threshold(*thresholds)
  gc.callbacks.remove(remember)


def test_the_garbage_collector_waits_until_a_step_is_traced(collections):
  model = load_model(arm())
  layout = Layout(model, ("xpos",))
  numbers = []
  for trace in (trace_step, trace_step.__wrapped__):
    collections.clear()
    trace(model, layout)
    numbers.append(len(collections))
  assert numbers[0] < 10 < numbers[1]
  assert gc.isenabled()


def test_it_goes_on_where_tracing_fails():
  with pytest.raises(AttributeError):
    trace_step(None, None)
  assert gc.isenabled()
