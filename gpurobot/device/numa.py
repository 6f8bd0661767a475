"""NUMA nodes of a machine: groups of cores with memory of their own, one for each socket or chiplet."""

import os
import warnings
from pathlib import Path

from gpurobot.device.process import core_indices

NODES = Path("/sys/devices/system/node")  # Linux's folder for each node


def cores_by_node() -> list[set[int]]:
  """Return the usable cores of each node that has any, in the order of the nodes.

  The list is empty where the system does not say, as macOS and Windows do not.
  """
  files = sorted(NODES.glob("node*/cpulist"), key=lambda file: int(file.parent.name.removeprefix("node")))
  nodes = [_cores(file.read_text()) & core_indices() for file in files]
  return [node for node in nodes if node]


def bind(local_rank: int, local_size: int) -> None:
  """Bind a rank's threads to the cores of one node; every node gets the same number of ranks.

  Linux places memory on the node of the core that first writes to it, so a rank that stays on its node
  reads its tensors there. A single rank, or a number of ranks that the nodes cannot share evenly, may use all
  cores as before; the first of several ranks warns.
  """
  nodes = cores_by_node()
  if len(nodes) > 1 and local_size % len(nodes) == 0:
    os.sched_setaffinity(0, nodes[local_rank * len(nodes) // local_size])
  elif len(nodes) > 1 and local_size > 1 and local_rank == 0:
    shares = f"{len(nodes)} NUMA nodes cannot share {local_size} ranks evenly, so none is bound to a node"
    warnings.warn(f"{shares}: start a multiple of {len(nodes)}", stacklevel=3)


def _cores(text: str) -> set[int]:
  """Return the cores of Linux's list, such as 0-3,8-11."""
  ends = [part.split("-") for part in text.strip().split(",") if part]
  return {core for first, *last in ends for core in range(int(first), int(*last or [first]) + 1)}
