"""Training on machines of a Ray cluster, a torchrun on each, all of them started again if one is lost.

`ray job submit --working-dir . -- python examples/launch/ray_train.py --machines 2 --gpus 8 task=ant
run_dir=/shared/runs/ant` trains on 16 GPUs. The machines see the run folder, and have gpurobot installed.
"""

import argparse
import socket
import subprocess
import sys
from collections.abc import Callable

import ray
from ray.exceptions import RayError
from ray.util.placement_group import placement_group, remove_placement_group
from ray.util.scheduling_strategies import PlacementGroupSchedulingStrategy


def meeting_point() -> tuple[str, int]:
  """Return the address of this machine and a free port."""
  with socket.create_server(("", 0)) as probe:
    return ray.util.get_node_ip_address(), probe.getsockname()[1]


def torchrun(options: list[str], words: list[str]) -> int:
  """Run the ranks of this machine, and return torchrun's exit status."""
  command = [sys.executable, "-m", "torch.distributed.run", *options, "--module", "gpurobot", "train", *words]
  return subprocess.run(command, check=False).returncode


def train(machines: int, ranks: int, resources: dict[str, float], words: list[str]) -> bool:
  """Train on machines with these resources, with as many ranks on each; return whether it ended well.

  The machines are waited for. If one of them is lost, the ranks of the others notice it and end.
  """
  group = placement_group([resources] * machines, strategy="STRICT_SPREAD")
  ray.get(group.ready())

  def start(function: Callable[..., object], index: int, *values: object) -> ray.ObjectRef:
    there = PlacementGroupSchedulingStrategy(group, placement_group_bundle_index=index)
    options = {"num_cpus": resources["CPU"], "num_gpus": resources.get("GPU", 0), "max_retries": 0}
    return ray.remote(function).options(scheduling_strategy=there, **options).remote(*values)

  try:
    address, port = ray.get(start(meeting_point, 0))
    common = [f"--nnodes={machines}", f"--nproc_per_node={ranks}", f"--master_addr={address}"]
    common.append(f"--master_port={port}")
    jobs = [start(torchrun, i, [*common, f"--node_rank={i}"], words) for i in range(machines)]
    return not any(ray.get(jobs))
  except RayError as error:
    print(f"a machine is lost, or its worker failed: {' '.join(str(error).split())}")
    return False
  finally:
    remove_placement_group(group)


def main(argv: list[str]) -> int:
  """Train until it ends well, with some restarts; return the exit status."""
  parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
  parser.add_argument("--machines", type=int, default=2)
  parser.add_argument("--gpus", type=int, default=8, help="GPUs of each machine, a rank for each")
  parser.add_argument("--ranks", type=int, default=1, help="ranks of each machine with --gpus 0")
  parser.add_argument("--cpus", type=int, default=8, help="CPUs of each rank")
  parser.add_argument("--restarts", type=int, default=3)
  parser.add_argument("words", nargs="*", help="settings of train.py, with run_dir=<folder>")
  given = parser.parse_args(argv)
  ranks = given.gpus or given.ranks
  resources = {"CPU": ranks * given.cpus} | ({"GPU": given.gpus} if given.gpus else {})
  ray.init()
  words = [*given.words, "resume=auto", f"threads={given.cpus}"]
  return int(not any(train(given.machines, ranks, resources, words) for _ in range(1 + given.restarts)))


if __name__ == "__main__":
  sys.exit(main(sys.argv[1:]))
