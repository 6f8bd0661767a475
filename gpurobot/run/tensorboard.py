"""The TensorBoard log of a run: grouped scalars, settings beside those of other runs, charts of parts."""

import math
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from tensorboard.compat.proto.event_pb2 import Event, SessionLog
from tensorboard.compat.proto.summary_pb2 import Summary, SummaryMetadata
from torch.utils.tensorboard import FileWriter
from torch.utils.tensorboard.summary import custom_scalars, hparams, text

from gpurobot.run import metrics

SCALARS = SummaryMetadata.PluginData(plugin_name="scalars")
# What is read together: the lines of one chart in the tab Custom Scalars, by a pattern of their tags.
CHARTS = {
  "terms of the reward": ["Multiline", [r"reward/(?!min$|max$).*"]],
  "losses": ["Multiline", [r"loss/.*"]],
  "shares of the time": ["Multiline", [r"time/.*"]],
}
RESULTS = ("episode/return", "episode/length", "episode/success", "speed/all")  # beside settings in HParams


class TensorBoardLog:
  """Writes rows of the log as scalars, settings, and texts."""

  def __init__(self, folder: Path, steps: int) -> None:
    """Open the events of a run folder, at so many steps: later ones, of a run that broke off, are hidden."""
    self._writer = FileWriter(str(folder))
    self._writer.add_event(Event(session_log=SessionLog(status=SessionLog.START)), steps + 1)
    self._writer.add_summary(custom_scalars({"parts": CHARTS}), steps)
    self._described: set[str] = set()

  def write_config(self, values: Mapping[str, Any], steps: int) -> None:
    """Show settings by key as a text, and in the tab HParams beside those of other runs."""
    self.write_text("config", [f"{key}={value}" for key, value in values.items()], steps)
    shown = {key: value if isinstance(value, int | float) else str(value) for key, value in values.items()}
    experiment, start, _end = hparams(shown, dict.fromkeys(RESULTS))
    for summary in (experiment, start):
      self._writer.add_summary(summary, steps)

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

  def write_video(self, tag: str, gif: bytes, steps: int) -> None:
    """Add an animated GIF, which the tab Images plays."""
    width, height = (int.from_bytes(gif[start : start + 2], "little") for start in (6, 8))  # of its header
    image = Summary.Image(width=width, height=height, colorspace=3, encoded_image_string=gif)
    self._writer.add_summary(Summary(value=[Summary.Value(tag=tag, image=image)]), steps)

  def close(self) -> None:
    """Write what is left."""
    self._writer.close()
