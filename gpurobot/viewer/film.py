"""Moving pictures in files: .mp4 for players, .gif and .webp for pages."""

import itertools
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import imageio.v2 as imageio
from PIL import Image

from gpurobot.config import ConfigError, nearest_word
from gpurobot.viewer.offscreen import Picture

SUFFIXES = (".mp4", ".gif", ".webp")
GIF_TICK = 10  # in which a GIF counts time [ms]
GIF_RATE = 50  # browsers show pictures of less than two ticks slowly


class Film:
  """A file that pictures are added to; it is complete when the `with` block ends, and gone if that fails."""

  def __init__(self, path: Path, rate: float) -> None:
    """Begin the file; `rate` [pictures/s]. Raises ConfigError where no such file can be written."""
    if path.suffix not in SUFFIXES:
      near = nearest_word(path.suffix, SUFFIXES)
      raise ConfigError(f"video={path} is none of {', '.join(SUFFIXES)}; the nearest is '{near}'")
    self.path, self.rate = path, rate
    self._is_gif = path.suffix == ".gif"
    if self._is_gif and rate > GIF_RATE:
      raise ConfigError(
        f"a .gif shows at most {GIF_RATE} pictures/s, not fps={rate:g}: write a .webp or .mp4"
      )
    path.parent.mkdir(parents=True, exist_ok=True)
    self._pictures: list[Image.Image] = []  # Pillow writes them together
    self._stream: Any = None
    if path.suffix == ".mp4":
      self._stream = imageio.get_writer(path, fps=rate, macro_block_size=2)  # codecs want even sides

  def add(self, picture: Picture) -> None:
    """Add the next picture."""
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
