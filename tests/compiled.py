"""Requirements of torch's compiler on an iteration, checked without generating code, which takes minutes."""

import functools
from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch._dynamo import config, guards, reset
from torch._dynamo.utils import counters

DELIBERATE = "`torch.compiler.disable()`d function"  # where the compiler is told to leave something alone


@contextmanager
def tracing(monkeypatch) -> Iterator[None]:
  """Let `torch.compile` trace, and run what it traced as it is; fail where it could not follow the code."""
  reset()
  counters.clear()
  monkeypatch.setattr(torch, "compile", functools.partial(torch.compile, backend="eager"))
  # Torch only logs what this measures, for which it empties the processor's caches each time.
  monkeypatch.setattr(guards, "profile_guard_manager", lambda *_: 0.0)
  yield
  assert counters["stats"]["unique_graphs"] > 0
  assert [reason for reason in counters["graph_break"] if DELIBERATE not in reason] == []


def nothing_new():
  """Within the block everything has been compiled before."""
  return config.patch(error_on_recompile=True)
