"""TensorBoard log of a run: grouped scalars, hyperparameters, custom charts, videos."""

import math
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from tensorboard.compat.proto.event_pb2 import Event, SessionLog
from tensorboard.compat.proto.summary_pb2 import Summary, SummaryMetadata
from torch import Tensor
from torch.utils.tensorboard import FileWriter
from torch.utils.tensorboard.summary import custom_scalars, hparams, image, text

from gpurobot.run import metrics
from gpurobot.run.logger import SEEN, Logger

SCALARS = SummaryMetadata.PluginData(plugin_name="scalars")
# Charts of the tab Custom Scalars, each with patterns of the tags that it shows.
CHARTS = {
  "terms of the reward": ["Multiline", [r"reward/(?!min$|max$).*"]],
  "losses": ["Multiline", [r"loss/.*"]],
  "shares of the time": ["Multiline", [r"time/.*"]],
}
RESULTS = ("episode/return", "episode/length", "episode/success", "speed/all")  # results in the tab HParams


class TensorBoardLog(Logger):
  """Writer of a run's TensorBoard events."""

  name = "TensorBoard's events"

  def __init__(self, folder: Path, steps: int) -> None:
    """Open the events of a run folder at `steps`; TensorBoard hides later events of an interrupted run."""
    self._writer, self._start = FileWriter(str(folder)), steps
    self._writer.add_event(Event(session_log=SessionLog(status=SessionLog.START)), steps + 1)
    self._writer.add_summary(custom_scalars({"parts": CHARTS}), steps)
    self._described: set[str] = set()

  def write_config(self, values: Mapping[str, Any]) -> None:
    """Write settings by key as text, and for the tab HParams, which compares runs."""
    self.write_text("config", [f"{key}={value}" for key, value in values.items()], self._start)
    shown = {key: value if isinstance(value, int | float) else str(value) for key, value in values.items()}
    experiment, start, _end = hparams(shown, dict.fromkeys(RESULTS))
    for summary in (experiment, start):
      self._writer.add_summary(summary, self._start)

  def write(self, row: Mapping[str, float]) -> None:
    """Write the finite numbers of a row."""
    finite = [(column, value) for column, value in row.items() if math.isfinite(value)]
    self._writer.add_summary(Summary(value=[self._scalar(*pair) for pair in finite]), int(row["steps"]))

  def _scalar(self, column: str, value: float) -> Summary.Value:
    _, tag, description = metrics.find(column)
    metadata = SummaryMetadata(summary_description=description, plugin_data=SCALARS)
    first = tag not in self._described  # TensorBoard reads the description only from the first value
    self._described.add(tag)
    return Summary.Value(tag=tag, simple_value=value, metadata=metadata if first else None)

  def write_text(self, tag: str, lines: Iterable[str], steps: int) -> None:
    """Write lines of preformatted text."""
    self._writer.add_summary(text(tag, "\n".join(f"    {line}" for line in lines)), steps)

  def write_video(self, path: Path, steps: int) -> None:
    """Write a video, which the tab Images plays."""
    gif = path.read_bytes()
    width, height = (int.from_bytes(gif[start : start + 2], "little") for start in (6, 8))  # from its header
    video = Summary.Image(width=width, height=height, colorspace=3, encoded_image_string=gif)
    self._writer.add_summary(Summary(value=[Summary.Value(tag="policy", image=video)]), steps)

  def write_images(self, pictures: Mapping[str, Tensor], steps: int) -> None:
    """Write what the policy sees, for the tab Images."""
    for name, colours in pictures.items():
      self._writer.add_summary(image(f"{SEEN}/{name}", colours, dataformats="HWC"), steps)

  def close(self, failed: bool) -> None:  # noqa: ARG002 (events say nothing of the end)
    """Write the remaining events and close the file."""
    self._writer.close()
