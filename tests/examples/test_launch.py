"""Recipes that start a training on several machines, and the image: what schedulers do with them."""

import os
import shlex
import stat
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from torch.distributed import run as torchrun

import tasks
from gpurobot.device.distributed import World
from gpurobot.run import checkpoint
from gpurobot.shell import cli
from tests.gpurobot import toy
from tests.ranks import HANG
from tests.test_house import ROOT

RECIPES = ROOT / "examples" / "launch"
# Slurm's commands, for a step of two ranks: one is on each machine, and each is a process here.
SRUN = """
import os, subprocess, sys
words = [word for word in sys.argv[1:] if not word.startswith("--")]
ranks = [
  subprocess.Popen(words, env=os.environ | {"SLURM_PROCID": f"{rank}", "SLURM_LOCALID": "0"})
  for rank in range(int(os.environ["SLURM_NTASKS"]))
]
sys.exit(max(rank.wait() for rank in ranks))
"""
SCONTROL = """
import os, sys
if sys.argv[1] == "requeue":
  open("requeued.txt", "a").write(f"{sys.argv[2]}\\n")
else:
  os.write(1, b"localhost\\nlocalhost\\n")  # in one piece: `head` closes the pipe
"""
# A training that tells its variables and settings, and ends as it is told.
GPUROBOT = """
import os, sys
names = ("RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE", "MASTER_ADDR")
line = " ".join([*(os.environ[name] for name in names), *sys.argv[1:]])
os.write(1, line.encode() + bytes([10]))  # in one piece
if "signal" in sys.argv and os.environ["RANK"] == "0":
  os.kill(int(open("script.txt").read()), 15)
sys.exit(next(int(word) for word in sys.argv if word.isdecimal()))
"""
PREEMPTED = """
import itertools, os, signal
from gpurobot.shell import command
from gpurobot.run.training_run import TrainingRun

iterations = itertools.count(1)

def step(run, step=TrainingRun.step):
  step(run)
  if next(iterations) == 3 and not os.path.exists("requeued.txt"):
    os.kill(os.getpid(), signal.SIGTERM)

TrainingRun.step = step
raise SystemExit(command.main())
"""


def program(folder: Path, name: str, text: str) -> None:
  """Write a Python program that a shell finds by its name."""
  path = folder / "bin" / name
  path.parent.mkdir(exist_ok=True)
  path.write_text(f"#!{sys.executable}\n{text}")
  path.chmod(path.stat().st_mode | stat.S_IXUSR)


def slurm(folder: Path, *words: str, size: int = 2, restarts: int = 0) -> subprocess.CompletedProcess[str]:
  """Run the script as Slurm runs it on the first of two machines, with a rank on each."""
  program(folder, "srun", SRUN)
  program(folder, "scontrol", SCONTROL)
  given = {"JOB_ID": 17, "JOB_NODELIST": "n[1-2]", "NTASKS": size, "NNODES": size, "RESTART_COUNT": restarts}
  return subprocess.run(
    ["bash", "-c", 'echo $$ > script.txt; exec bash "$0" "$@"', str(RECIPES / "slurm.sh"), *words],
    cwd=folder,
    env=os.environ
    | {f"SLURM_{name}": str(value) for name, value in given.items()}
    | {"PATH": f"{folder / 'bin'}:{os.environ['PATH']}", "PYTHONPATH": str(ROOT)},
    check=False,
    capture_output=True,
    text=True,
    timeout=HANG,
  )


def test_slurm_starts_the_ranks(tmp_path):
  program(tmp_path, "gpurobot", GPUROBOT)
  done = slurm(tmp_path, "task=ant", "env.x=a b", "0")
  settings = "localhost train run_dir=runs/slurm-17 resume=auto task=ant env.x=a b 0"
  assert sorted(done.stdout.splitlines()) == [f"0 2 0 1 {settings}", f"1 2 0 1 {settings}"]
  assert done.stderr == ""


@pytest.mark.parametrize(("words", "restarts", "again"), [
  ("0", 0, False), ("2", 0, False), ("1", 0, True), ("1", 20, False), ("143", 0, True), ("143", 99, True),
  ("143 signal", 0, False), ("1 signal", 0, False),
])  # fmt: skip
def test_slurm_queues_again_what_was_stopped(tmp_path, words, restarts, again):
  program(tmp_path, "gpurobot", GPUROBOT)
  done = slurm(tmp_path, *words.split(), restarts=restarts)
  assert done.returncode == int(words.split()[0])
  assert (tmp_path / "requeued.txt").exists() == again


def test_slurm_continues_a_training_that_was_preempted(tmp_path):
  program(tmp_path, "gpurobot", PREEMPTED)
  words = (f"task={toy.__file__}", "num_envs=64", "max_iterations=5", "log_every=1", "threads=1")
  assert slurm(tmp_path, *words, size=1).returncode == 143
  place = tmp_path / "runs" / "slurm-17"
  assert checkpoint.read(place)["learner"]["iteration"] == 3
  assert (tmp_path / "requeued.txt").read_text() == "17\n"
  done = slurm(tmp_path, *words, size=1, restarts=1)
  assert (done.returncode, done.stderr) == (0, "")
  assert checkpoint.read(place)["learner"]["iteration"] == 5


def of_torchrun(command: list[str]) -> tuple[list[str], list[str]]:
  """Return nodes, rank of the node, ranks on it, and where they meet; and the settings, which are checked."""
  options = torchrun.parse_args(command[1:])
  assert (command[0], options.module, options.training_script) == ("torchrun", True, "gpurobot")
  program, *words = options.training_script_args
  assert program == "train"
  cli.parse(words, tasks.load, World())
  meeting = [options.nnodes, options.node_rank, options.nproc_per_node, options.master_addr]
  return [str(value) for value in meeting], words


def test_jobset_starts_a_torchrun_on_each_machine():
  job = yaml.safe_load((RECIPES / "jobset.yaml").read_text())
  (group,) = job["spec"]["replicatedJobs"]
  indexed = group["template"]["spec"]
  pod = indexed["template"]["spec"]
  (container,) = pod["containers"]
  names = {variable["name"] for variable in container["env"]}
  assert names == {"NODE_RANK"}
  nodes, ranks = indexed["completions"], container["resources"]["limits"]["nvidia.com/gpu"]
  first = f"{job['metadata']['name']}-{group['name']}-0-0.{job['metadata']['name']}"  # JobSet's name of a pod
  command = [word.replace("$(NODE_RANK)", "1") for word in container["command"]]
  meeting, words = of_torchrun(command)
  assert meeting == [str(nodes), "1", str(ranks), first]
  folders = [mount["mountPath"] for mount in container["volumeMounts"]]
  assert any(f"run_dir={folder}/" in " ".join(words) for folder in folders)
  assert {mount["name"] for mount in container["volumeMounts"]} == {
    volume["name"] for volume in pod["volumes"]
  }
  assert "resume=auto" in words
  assert indexed["parallelism"] == nodes


def test_skypilot_starts_a_torchrun_on_each_machine(tmp_path):
  task = yaml.safe_load((RECIPES / "skypilot.yaml").read_text())
  program(tmp_path, "torchrun", "import json, sys\nprint(json.dumps(sys.argv[1:]))")
  given = {"NUM_NODES": 2, "NUM_GPUS_PER_NODE": 8, "NODE_RANK": 1, "NODE_IPS": "10.0.0.1\n10.0.0.2"}
  done = subprocess.run(
    ["bash", "-c", task["run"]],
    env=os.environ
    | task["envs"]
    | {f"SKYPILOT_{name}": str(value) for name, value in given.items()}
    | {"PATH": f"{tmp_path / 'bin'}:{os.environ['PATH']}"},
    check=True,
    capture_output=True,
    text=True,
  )
  meeting, words = of_torchrun(["torchrun", *yaml.safe_load(done.stdout)])
  assert meeting == ["2", "1", "8", "10.0.0.1"]
  assert words == ["task=ant", "run_dir=/runs/ant-1", "resume=auto"]
  assert set(task["file_mounts"]) == {"/runs"}
  assert task["resources"]["use_spot"]


@pytest.mark.xdist_group("ray")
def test_ray_trains_on_a_cluster(tmp_path, cluster):
  words = [f"task={toy.__file__}", "num_envs=64", "max_iterations=1", f"run_dir={tmp_path / 'run'}"]
  command = [
    sys.executable,
    str(RECIPES / "ray_train.py"),
    "--machines=1",
    "--gpus=0",
    "--ranks=2",
    "--cpus=1",
  ]
  environment = os.environ | {"PYTHONPATH": str(ROOT), "RAY_ADDRESS": cluster}
  done = subprocess.run(
    [*command, "--restarts=0", *words],
    cwd=tmp_path,
    env=environment,
    check=False,
    capture_output=True,
    timeout=HANG,
  )
  assert done.returncode == 0, done.stderr.decode()
  assert len(checkpoint.read(tmp_path / "run")["learner"]["ranks"]) == 2


def test_the_image_is_built_from_files_that_are_there():
  lines = (ROOT / "Dockerfile").read_text().replace("\\\n", " ").splitlines()
  steps = [line.split() for line in lines]
  copied = {
    word for words in steps if words[:1] == ["COPY"] and "--from=build" not in words for word in words[1:-1]
  }
  sent = {line[1:] for line in (ROOT / ".dockerignore").read_text().splitlines() if line.startswith("!")}
  assert copied - {"."} <= sent
  assert all((ROOT / name).exists() for name in sent)
  text = (ROOT / "pyproject.toml").read_text()
  assert all(name in sent for name in ("assets", "gpurobot", "physics", "tasks", "train.py", "LICENSE"))
  assert 'only-include = ["assets", "gpurobot", "physics", "tasks", "train.py"]' in text
  assert ["ENTRYPOINT", '["gpurobot"]'] in steps
  warm = next(line for line in lines if "$WARM" in line)
  (training,) = [
    shlex.split(part) for part in warm.replace(";", "&&").split("&&") if "gpurobot train" in part
  ]
  words = [word.replace("$task", "cartpole") for word in training[training.index("train") + 1 :]]
  assert cli.parse(words, tasks.load, World())[0].max_iterations == 0
