"""TensorBoard's events of a run: every scalar in a group, with a description."""

import math
from collections.abc import Iterable, Mapping
from pathlib import Path

from tensorboard.compat.proto.event_pb2 import Event, SessionLog
from tensorboard.compat.proto.summary_pb2 import Summary, SummaryMetadata
from torch.utils.tensorboard import FileWriter
from torch.utils.tensorboard.summary import text

from gpurobot import metrics

SCALARS = SummaryMetadata.PluginData(plugin_name="scalars")


class Board:
  """Writes rows of the log as scalars, and texts."""

  def __init__(self, folder: Path, steps: int) -> None:
    """Open the events of a run folder, at so many steps: later ones, of a run that broke off, are hidden."""
    self._writer = FileWriter(str(folder))
    self._writer.add_event(Event(session_log=SessionLog(status=SessionLog.START)), steps + 1)
    self._described: set[str] = set()

  def write(self, row: Mapping[str, float], steps: int) -> None:
    """Add the finite numbers of a row."""
    finite = [(column, value) for column, value in row.items() if math.isfinite(value)]
    self._writer.add_summary(Summary(value=[self._scalar(*pair) for pair in finite]), steps)

  def _scalar(self, column: str, value: float) -> Summary.Value:
    _, tag, description = metrics.find(column)
    metadata = SummaryMetadata(summary_description=description, plugin_data=SCALARS)
    first = tag not in self._described  # TensorBoard reads the description there and nowhere else
    self._described.add(tag)
    return Summary.Value(tag=tag, simple_value=value, metadata=metadata if first else None)

  def write_text(self, tag: str, lines: Iterable[str], steps: int) -> None:
    """Add lines of text, shown as they are."""
    self._writer.add_summary(text(tag, "\n".join(f"    {line}" for line in lines)), steps)

  def close(self) -> None:
    """Write what is left."""
    self._writer.close()
