"""Launch of trials on a Ray cluster (ray.io), for searches that outgrow one machine.

The machines of the cluster share the folders of the runs and have the same Python environment. Trials join
the cluster of `ray start` or RAY_ADDRESS; without one, Ray starts a local one.
"""

import contextlib
import subprocess
import time
from collections.abc import Sequence
from pathlib import Path

import ray
from ray.exceptions import RayError

from gpurobot.device.process import PLACE, python, usable_cores
from gpurobot.search.launch import POLL, Start
from gpurobot.search.trial import OUTPUT, Trial
from gpurobot.settings.config import ConfigError

LOST = 1  # exit status of a trial that lost its machine or worker


def run_command(command: Sequence[str], folder: Path, output: Path, stop: Path) -> int:
  """Run a program of Python in a folder, on a machine of the cluster, and return its exit status.

  Its output goes to a file. It is asked to end when the file `stop` exists.
  """
  with output.open("ab") as file:
    words, environment = python(*command)  # of this machine
    process = subprocess.Popen(
      words, cwd=folder, env=environment, stdin=subprocess.DEVNULL, stdout=file, stderr=subprocess.STDOUT
    )
  while process.poll() is None:
    if stop.exists():
      process.terminate()
      process.wait()
    time.sleep(POLL)
  stop.unlink(missing_ok=True)
  return int(process.returncode)


class RayProcess:
  """A trial that runs on the cluster, a `launch.Process`."""

  def __init__(self, trial: Trial, cpus: int, gpus: int) -> None:
    """Queue the trial until a machine has as many free CPUs and GPUs."""
    trial.folder.mkdir(parents=True, exist_ok=True)
    folder = trial.folder.absolute()
    (folder / OUTPUT).touch()
    self._output, self._stop = folder / OUTPUT, folder / ".stop"
    self._stop.unlink(missing_ok=True)
    task = ray.remote(num_cpus=cpus, num_gpus=gpus, max_retries=0)(run_command)
    self._result = task.remote(trial.command(), Path.cwd(), self._output, self._stop)

  def poll(self) -> int | None:
    """Return the exit status, or None while the trial waits or runs."""
    if not ray.wait([self._result], timeout=0)[0]:
      return None
    try:
      return int(ray.get(self._result))
    except RayError as error:
      with self._output.open("a") as file:
        file.write(f"{' '.join(str(error).split())}\n")
      return LOST

  def terminate(self) -> None:
    """Ask the trial to save a checkpoint and end; one that still waits ends as soon as it starts."""
    self._stop.touch()


def connect() -> Start:
  """Connect to the cluster, and return the function that starts trials there."""
  if not ray.is_initialized():
    with contextlib.chdir(PLACE):  # where Ray's workers look for modules, as in the script's folder
      ray.init(log_to_driver=False, include_dashboard=False, logging_level="warning")
  machines = [node["Resources"] for node in ray.nodes() if node["Alive"]]
  most = int(max(machine.get("CPU", 0) for machine in machines))
  has_gpus = any(machine.get("GPU", 0) for machine in machines)

  def begin(trial: Trial) -> RayProcess:
    cpus = int(trial.values.get("threads") or usable_cores())
    if cpus > most:
      raise ConfigError(
        f"threads={cpus}: the largest machine of the Ray cluster has {most} CPUs; write fewer"
      )
    device = trial.config.device
    return RayProcess(trial, cpus, int(device.startswith("cuda") or (device == "auto" and has_gpus)))

  return begin
