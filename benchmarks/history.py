"""Ratios of the benchmarks by commit: python -m benchmarks.history draws them, and fails if one has fallen.

`make bench` adds an entry for the commit and the machine to docs/results/history.jsonl, one line of JSON.
Only ratios are kept, because speeds depend on the machine. Ratios do a little, so they are compared on one
machine only.
"""

import datetime as dt
import json
import statistics
import subprocess
import sys
from collections.abc import Mapping, Sequence
from importlib import metadata
from pathlib import Path
from typing import NamedTuple

from matplotlib.figure import Figure

from gpurobot.doctor import devices

ROOT = Path(__file__).parents[1]
PATH = ROOT / "docs" / "results" / "history.jsonl"
PICTURE = PATH.with_suffix(".png")
VERSIONS = ("torch", "warp-lang", "mujoco")
DROP = 0.05  # fraction by which a ratio may be below the median of the entries before
BEFORE = 5  # number of earlier entries that a ratio is compared with
CROWDED = 50.0  # range of ratios beyond which a panel has room only for labels of decades
LEFT_OUT = ".threads2"  # of the picture: its lines are like one thread's


class Entry(NamedTuple):
  """Ratios of one commit on one machine."""

  commit: str
  date: str
  machine: str
  versions: dict[str, str]
  ratios: dict[str, float]


def read(path: Path = PATH) -> list[Entry]:
  """Return the entries, oldest first."""
  return [Entry(**json.loads(row)) for row in path.read_text().splitlines()] if path.exists() else []


def keep(figures: Mapping[str, float], path: Path = PATH) -> None:
  """Add the ratios among the figures to the entry of this commit and machine, the last in the file."""
  ratios = {name: value for name, value in figures.items() if name.endswith("ratio")}
  if not ratios:
    return
  if not (ROOT / ".git").exists():
    print("no entry in the history: this is no checkout of a commit", file=sys.stderr)
    return
  version = subprocess.run(
    ["git", "describe", "--always", "--dirty"], cwd=ROOT, check=True, capture_output=True, text=True
  )
  commit, machine = version.stdout.strip(), dict(devices())["cpu"]
  entries = read(path)
  for entry in [entry for entry in entries if (entry.commit, entry.machine) == (commit, machine)]:
    entries.remove(entry)
    ratios = entry.ratios | ratios
  today = dt.datetime.now(dt.UTC).date().isoformat()
  versions = {name: metadata.version(name) for name in VERSIONS}
  entries.append(Entry(commit, today, machine, versions, ratios))
  path.write_text("".join(json.dumps(entry._asdict()) + "\n" for entry in entries))


def fallen(entries: Sequence[Entry]) -> dict[str, tuple[float, float]]:
  """Return (before, now) by name of the ratios of the last entry that have fallen by more than DROP.

  `before` is the median of up to BEFORE entries of the same machine that have the ratio.
  """
  *earlier, last = entries
  found = {}
  for name, now in last.ratios.items():
    known = [
      entry.ratios[name] for entry in earlier if entry.machine == last.machine and name in entry.ratios
    ]
    if known and now < (1 - DROP) * (before := statistics.median(known[-BEFORE:])):
      found[name] = before, now
  return found


def draw(entries: Sequence[Entry], path: Path = PICTURE) -> None:
  """Draw each ratio as a line over the entries, one for each machine; physics has its own panel."""
  names = dict.fromkeys(name for entry in entries for name in entry.ratios if LEFT_OUT not in name)
  panels = [[name for name in names if name.startswith("physics.") is physics] for physics in (True, False)]
  figure = Figure(figsize=(9, 9), layout="constrained")
  for axes, lines in zip(figure.subplots(2, sharex=True, height_ratios=(3, 2)), panels, strict=True):
    for index, name in enumerate(lines):
      color, label = f"C{index % 10}", name.removesuffix(".ratio").removesuffix(".threads1")
      for machine in dict.fromkeys(entry.machine for entry in entries if name in entry.ratios):
        points = [
          (place, entry.ratios[name])
          for place, entry in enumerate(entries)
          if entry.machine == machine and name in entry.ratios
        ]
        axes.plot(*zip(*points, strict=True), color=color, marker="os^v"[index // 10 % 4], label=label)
        label = ""
    axes.set_yscale("log")
    axes.yaxis.set_major_formatter("{x:g}")
    low, high = axes.get_ylim()
    axes.yaxis.set_minor_formatter("{x:g}" if high < CROWDED * low else "")
    axes.set_ylabel("ratio")
    axes.grid(alpha=0.3, which="both")
    axes.legend(fontsize="x-small", loc="center left", bbox_to_anchor=(1, 0.5))
  axes.set_xticks(range(len(entries)), [f"{entry.commit}\n{entry.date}" for entry in entries], rotation=90)
  figure.savefig(path, metadata={"Software": None})


def run() -> int:
  """Draw the entries, print the ratios that have fallen, and return the exit status.

  It is 1 if there are any, and 2 without entries.
  """
  entries = read()
  if not entries:
    print("error: no entries yet: `make bench` adds one", file=sys.stderr)
    return 2
  draw(entries)
  found = fallen(entries)
  for name, (before, now) in found.items():
    print(f"{name}: {now:.4g}, {1 - now / before:.0%} below {before:.4g}")
  return int(bool(found))


if __name__ == "__main__":
  sys.exit(run())
