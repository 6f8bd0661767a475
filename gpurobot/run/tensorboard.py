"""TensorBoard log of a run: grouped scalars, hyperparameters, custom charts, videos."""

import io
import math
import socket
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tensorboard.compat.proto.event_pb2 import Event, SessionLog
from tensorboard.compat.proto.summary_pb2 import Summary, SummaryMetadata
from tensorboard.summary.writer.record_writer import RecordWriter
from torch import Tensor
from torch.utils.tensorboard.summary import custom_scalars, hparams, image, text

from gpurobot.run import metrics
from gpurobot.run.files import append
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
    # On a full disk the thread of TensorBoard's own writer prints a traceback, and closing waits forever.
    self._path = folder / f"events.out.tfevents.{time.time_ns()}.{socket.gethostname()}"
    self._start = steps
    self._add(0, file_version="brain.Event:2")
    self._add(steps + 1, session_log=SessionLog(status=SessionLog.START))
    self._add(steps, summary=custom_scalars({"parts": CHARTS}))
    self._described: set[str] = set()

  def _add(self, steps: int, **content: Any) -> None:
    record = io.BytesIO()
    event = Event(wall_time=time.time(), step=steps, **content)
    RecordWriter(record).write(event.SerializeToString())
    append(self._path, record.getvalue())

  def write_config(self, values: Mapping[str, Any]) -> None:
    """Write settings by key as text, and for the tab HParams, which compares runs."""
    lines = "\n".join(f"    {key}={value}" for key, value in values.items())  # preformatted
    self._add(self._start, summary=text("config", lines))
    shown = {key: value if isinstance(value, int | float) else str(value) for key, value in values.items()}
    experiment, start, _end = hparams(shown, dict.fromkeys(RESULTS))
    for summary in (experiment, start):
      self._add(self._start, summary=summary)

  def write(self, row: Mapping[str, float]) -> None:
    """Write the finite numbers of a row."""
    finite = [(column, value) for column, value in row.items() if math.isfinite(value)]
    self._add(int(row["steps"]), summary=Summary(value=[self._scalar(*pair) for pair in finite]))

  def _scalar(self, column: str, value: float) -> Summary.Value:
    _, tag, description = metrics.find(column)
    metadata = SummaryMetadata(summary_description=description, plugin_data=SCALARS)
    first = tag not in self._described  # TensorBoard reads the description only from the first value
    self._described.add(tag)
    return Summary.Value(tag=tag, simple_value=value, metadata=metadata if first else None)

  def write_video(self, path: Path, steps: int) -> None:
    """Write a video, which the tab Images plays."""
    gif = path.read_bytes()
    width, height = (int.from_bytes(gif[start : start + 2], "little") for start in (6, 8))  # from its header
    video = Summary.Image(width=width, height=height, colorspace=3, encoded_image_string=gif)
    self._add(steps, summary=Summary(value=[Summary.Value(tag="policy", image=video)]))

  def write_images(self, pictures: Mapping[str, Tensor], steps: int) -> None:
    """Write what the policy sees, for the tab Images."""
    for name, colours in pictures.items():
      self._add(steps, summary=image(f"{SEEN}/{name}", colours, dataformats="HWC"))
