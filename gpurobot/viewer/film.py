"""Video files: .mp4 for players, .gif and .webp for web pages."""

import itertools
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import imageio.v2 as imageio
from PIL import Image

from gpurobot.settings.config import ConfigError, suggestion
from gpurobot.viewer.offscreen import Picture

SUFFIXES = (".mp4", ".gif", ".webp")
GIF_TICK = 10  # unit of time in a GIF [ms]
GIF_RATE = 50  # highest frame rate of a GIF: browsers slow down frames shorter than two ticks [1/s]


class Film:
  """Video file in progress; the `with` block completes it, or deletes it after an error."""

  def __init__(self, path: Path, rate: float) -> None:
    """Create the file, with `rate` frames per second; raise ConfigError on a bad suffix or rate."""
    if path.suffix not in SUFFIXES:
      near = suggestion(path.suffix, SUFFIXES)
      raise ConfigError(f"video={path} is none of {', '.join(SUFFIXES)}{near}")
    self.path, self.rate = path, rate
    self._is_gif = path.suffix == ".gif"
    if self._is_gif and rate > GIF_RATE:
      raise ConfigError(
        f"a .gif has at most {GIF_RATE} frames per second, not fps={rate:g}; write a .webp or .mp4"
      )
    path.parent.mkdir(parents=True, exist_ok=True)
    self._pictures: list[Image.Image] = []  # Pillow writes them all at once
    self._stream: Any = None
    if path.suffix == ".mp4":
      self._stream = imageio.get_writer(path, fps=rate, macro_block_size=2)  # codecs need even sizes

  def add(self, picture: Picture) -> None:
    """Add the next frame [height, width, 3]."""
    if self._stream:
      self._stream.append_data(picture)
    else:
      self._pictures.append(Image.fromarray(picture))

  def __enter__(self) -> Self:
    return self

  def __exit__(
    self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
  ) -> None:
    if self._stream:
      self._stream.close()
    if kind:
      self.path.unlink(missing_ok=True)
    elif self._pictures:
      self._write_together()

  def _write_together(self) -> None:
    first, *rest = self._pictures
    options, tick = ({"optimize": True}, GIF_TICK) if self._is_gif else ({"quality": 60, "method": 4}, 1)
    ends = [round(1000 * count / self.rate / tick) * tick for count in range(len(self._pictures) + 1)]
    durations = [end - start for start, end in itertools.pairwise(ends)]
    first.save(self.path, save_all=True, append_images=rest, duration=durations, loop=0, **options)
