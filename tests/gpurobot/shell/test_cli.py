import logging
import re
import shutil
import subprocess
import sys
import warnings

import pytest
import torch

import tasks
import train
from gpurobot.device.distributed import World
from gpurobot.run import checkpoint
from gpurobot.settings.algorithms import DistillConfig, PPOConfig, RNDConfig, SACConfig, TD3Config
from gpurobot.settings.checks import IDLE
from gpurobot.settings.config import ConfigError
from gpurobot.shell import cli
from tests.gpurobot import toy

TOY = f"task={toy.__file__}"


def test_help_prints_every_key_with_its_meaning_and_unit(capsys, monkeypatch):
  monkeypatch.setenv("COLUMNS", "100")
  with pytest.raises(SystemExit) as end:
    cli.parse([TOY, "--help=all"], tasks.load, World())
  assert not end.value.code
  text = capsys.readouterr().out
  for line in (
    r"num_envs=64 +number of environments, over all ranks",
    r"ppo.hidden=\[16,16\] +units of each hidden layer",
    r"max_seconds=null +maximum training time \[s\]",
    r"env.force=0.5 +distance of one step at full action \[m\]",
    r"ppo.layer_norm=false +layer normalisation",
    r"ppo.activation=silu +activation function of the hidden layers \(elu, relu, silu, tanh\)",
    r"\n\nPPO \(proximal policy optimisation\)\n  ppo.horizon=8 ",
    r"\n\nSettings of the toy\n  env.episode_steps=20 ",
  ):
    assert re.search(line, text), line
  assert "sac." not in text
  assert "\nAdd algorithm=sac or td3 or distill to see the settings of that algorithm instead.\n" in text


def test_help_has_the_keys_that_people_set(capsys):
  with pytest.raises(SystemExit):
    cli.parse([TOY, "--help"], tasks.load, World())
  text = capsys.readouterr().out
  assert "ppo.horizon=8 " in text
  assert "ppo.layer_norm" not in text
  assert re.search(
    r"\n--help=all prints every key with its meaning. Settings of the task:\senv.episode_steps,", text
  )


def test_help_of_another_algorithm_has_what_it_uses(capsys):
  for algorithm, has, lacks in (
    ("td3", ["td3.noise_max=0.4"], r"(ppo|sac)\."),
    ("distill", ["distill.mix=1.0", "ppo.hidden="], r"(ppo\.gamma|ppo\.amp|sac\.)"),
  ):
    with pytest.raises(SystemExit):
      cli.parse([TOY, f"algorithm={algorithm}", "--help=all"], tasks.load, World())
    text = capsys.readouterr().out
    assert all(setting in text for setting in has)
    assert not re.search(lacks, text)


@pytest.mark.parametrize(("words", "message"), [
  ([TOY, "overlap=true", "sim_device=gpu"], "sim_device=gpu is not one of auto, cpu, cuda, cuda:<index>"),
  ([TOY, "algorithm=distill", "teacher=a", "ppo.gamma=1"],
   "ppo.gamma has no effect with algorithm=distill; write algorithm=ppo, or no ppo.gamma"),
  ([TOY, "algorithm=distill", "teacher=a", "ppo.rnd.weight=1"],
   "ppo.rnd.weight has no effect with algorithm=distill; write algorithm=ppo, or no ppo.rnd.weight"),
  ([TOY, "ppo.rnd.lr=1"],
   "ppo.rnd.lr has no effect with ppo.rnd.weight=0; write another ppo.rnd.weight, or no ppo.rnd.lr"),
  ([TOY, "ppo.rnd.weight=1", "ppo.amp.task_weight=0.5"],
   "ppo.amp.task_weight has no effect with ppo.amp.style_weight=0; write another"),
  ([TOY, "algorithm=distill"],
   "algorithm=distill learns from a teacher; add teacher=<run folder or .pt file>"),
  ([TOY, "teacher=a"], "teacher=a has no effect with algorithm=ppo; add algorithm=distill"),
  ([TOY, "num_envs=30", "ppo.minibatches=32"],
   "num_envs=30 does not divide evenly among 1 rank(s) and 32 minibatch(es) of horizon 8; the nearest is 32"),
])  # fmt: skip
def test_bad_input_ends_with_one_line_and_status_2(words, message, capsys):
  with pytest.raises(SystemExit) as end, cli.user_errors(words, World()):
    cli.parse(words, tasks.load, World())
  assert end.value.code == 2
  out, error = capsys.readouterr()
  assert out == ""
  assert error.startswith(f"error: {message}")
  assert error.count("\n") == 1


def test_ranks_that_cannot_share_are_told_once(capsys):
  store = World().store
  for rank in range(2):
    world = World(rank, 2, rank, 2, store)
    with pytest.raises(SystemExit), cli.user_errors([], world):
      cli.parse([TOY, "num_envs=65"], tasks.load, world)
  assert capsys.readouterr().err.count("the nearest is 64\n") == 1


@pytest.mark.parametrize("rank", [0, 1])
def test_the_main_rank_prints_what_packages_log(rank, capsys):
  log = logging.getLogger("physics.trace.kernel")
  with cli.user_errors([], World(rank, 2, rank, 2, World().store)):
    log.info("building %s", "one")
  log.info("building another")
  assert capsys.readouterr().err == "building one\n" * (rank == 0)


WARN = """
import sys, warnings
from gpurobot.shell import cli
from gpurobot.device.distributed import World
for words, category in (([], UserWarning), (["debug=true"], UserWarning), ([], RuntimeWarning)):
  with cli.user_errors(words, World()):
    warnings.warn(f"two\\nlines of {len(words)}", category, stacklevel=1)
warnings.warn("no program", stacklevel=1)
"""


def test_a_warning_to_the_user_is_one_line_without_its_place():  # a process, as pytest records warnings
  done = subprocess.run([sys.executable, "-c", WARN], check=True, capture_output=True, text=True)
  plain, of_debug, *rest = done.stderr.replace("two\nlines", "two lines").splitlines()
  assert plain == "warning: two lines of 0"
  assert of_debug == "<string>:7: UserWarning: two lines of 1"
  assert rest == ["<string>:7: RuntimeWarning: two lines of 0", "<string>:8: UserWarning: no program"]


def test_warnings_can_still_be_recorded_and_filtered(capsys):
  with cli.user_errors([], World()):
    with pytest.warns(UserWarning, match="^recorded$"):
      warnings.warn("recorded", stacklevel=1)
    with warnings.catch_warnings():
      warnings.simplefilter("ignore")
      warnings.warn("ignored", stacklevel=1)
  assert capsys.readouterr().err == ""


def test_an_interrupt_is_no_mistake_of_the_program():
  with pytest.raises(SystemExit) as end, cli.user_errors([], World()):
    raise KeyboardInterrupt
  assert end.value.code == 130
  with pytest.raises(KeyboardInterrupt), cli.user_errors(["debug=true"], World()):
    raise KeyboardInterrupt


@pytest.mark.parametrize("word", ["debug=true", "debug=True"])
def test_debug_shows_where_a_mistake_was_found(word):
  with pytest.raises(ConfigError, match="nearest is 'num_envs'"), cli.user_errors([word], World()):
    cli.parse([TOY, word, "num_env=1"], tasks.load, World())


OF_TASK = ValueError("mine.py, line 3: OutOfMemoryError: 3 GiB")
OF_TASK.__cause__ = torch.OutOfMemoryError()


@pytest.mark.parametrize("error", [MemoryError(), torch.OutOfMemoryError("CUDA\nTried 3 GiB"), OF_TASK])
def test_too_little_memory_says_what_to_lower(error, capsys):
  with pytest.raises(SystemExit), cli.user_errors([], World()):
    raise error
  message = capsys.readouterr().err
  assert message.startswith("error: out of memory: lower num_envs or ppo.horizon (")
  assert message.count("\n") == 1


def test_the_memory_of_a_cpu_counts_too(capsys):
  with pytest.raises(SystemExit), cli.user_errors([], World()):
    torch.zeros(2**50)
  assert capsys.readouterr().err.startswith("error: out of memory: ")


def test_a_fault_of_the_program_keeps_its_traceback():
  with pytest.raises(RuntimeError, match="ours"), cli.user_errors([], World()):
    raise RuntimeError("ours")


def test_a_run_that_is_resumed_needs_no_more_the_checkpoint_it_began_from(tmp_path):
  train.main([TOY, "max_iterations=1", f"run_dir={tmp_path / 'first'}"])
  words = [TOY, f"checkpoint={tmp_path / 'first'}", f"run_dir={tmp_path / 'second'}", "max_iterations=1"]
  train.main(words)
  shutil.rmtree(tmp_path / "first")
  config, _ = cli.parse([TOY, f"resume={tmp_path / 'second'}"], tasks.load, World())
  assert config.checkpoint == str(tmp_path / "first")


@pytest.mark.parametrize(
  ("words", "warning"),
  [
    (["ppo.schedule=constant", "ppo.lr_max=1"], "ppo.lr_max has no effect with ppo.schedule=constant"),
    (["ppo.recurrent_units=8"], "ppo.recurrent_units has no effect with ppo.recurrent=none"),
    (["ppo.rnd.weight=1", "ppo.rnd.weight_steps=9"],
     "ppo.rnd.weight_steps has no effect with ppo.rnd.weight_final=null"),
    (["algorithm=sac", "sac.priority_beta=1"], "sac.priority_beta has no effect with sac.prioritized=false"),
    (["algorithm=td3", "td3.target_noise=0", "td3.target_noise_clip=1"],
     "td3.target_noise_clip has no effect with td3.target_noise=0.0"),
    (["tf32=true", "device=cpu"], "tf32 has no effect on a CPU"),
    (["ppo.kl_target=0.1", "ppo.recurrent=gru", "ppo.recurrent_units=8", "tf32=false"], ""),
  ],
)  # fmt: skip
def test_settings_without_effect_are_told(words, warning, recwarn):
  cli.parse([TOY, *words], tasks.load, World())
  assert "\n".join(str(told.message) for told in recwarn) == warning


def test_idle_settings_exist():
  groups = [vars(group) for group in (PPOConfig(), RNDConfig(), SACConfig(), TD3Config(), DistillConfig())]
  for names, other, _ in IDLE:
    assert any({*names, other} <= {*group} for group in groups)


def test_a_resumed_run_tells_what_has_no_effect(tmp_path, recwarn):
  train.main([TOY, "max_iterations=1", f"run_dir={tmp_path}"])
  resumed = [TOY, f"resume={tmp_path}", "ppo.log_std_init=0.0"]  # as it was
  cli.parse([*resumed, "ppo.gamma=0.9"], tasks.load, World())
  assert not recwarn
  cli.parse([*resumed, "ppo.log_std_init=1", "ppo.lr=1e-4"], tasks.load, World())
  start, rate = sorted(str(told.message) for told in recwarn)
  assert start == "ppo.log_std_init has no effect on a resumed run"
  assert rate.startswith("ppo.lr has no effect for long: ppo.schedule=adaptive goes on from it; to keep it")
  with pytest.raises(ConfigError, match=f"^checkpoint=a has no effect with resume={tmp_path}"):
    cli.parse([*resumed, "checkpoint=a"], tasks.load, World())
  both = [TOY, f"run_dir={tmp_path}", "resume=auto", "checkpoint=a"]  # for the start and for later
  assert cli.parse(both, tasks.load, World())[0].resume == str(tmp_path)


def test_resume_auto_starts_a_run_and_then_continues_it(tmp_path):
  words = [TOY, f"run_dir={tmp_path}", "resume=auto"]
  assert cli.parse([*words, "seed=7"], tasks.load, World())[0].resume is None
  train.main([*words, "seed=7", "max_iterations=1", "num_envs=64"])
  config, _ = cli.parse(words, tasks.load, World())
  assert (config.resume, config.run_dir, config.seed) == (str(tmp_path), str(tmp_path), 7)
  config, _ = cli.configure(
    {"task": toy.__file__, "run_dir": tmp_path, "resume": "auto"}, tasks.load, World()
  )
  assert config.resume == str(tmp_path)
  assert cli.parse([TOY, "resume=null"], tasks.load, World())[0].resume is None


def test_a_word_may_be_a_path_alone(tmp_path, monkeypatch, capsys):
  monkeypatch.chdir(tmp_path)
  checkpoint.write("runs/ant/old", {})
  assert cli.with_folder(["runs/ant/old", "seed=1"], "checkpoint") == ["checkpoint=runs/ant/old", "seed=1"]
  assert cli.with_folder(["nowhere"], "checkpoint") == ["checkpoint=nowhere"]
  assert cli.with_folder(["seed=1", "runs/ant/old"], "checkpoint") == ["checkpoint=runs/ant/old", "seed=1"]
  assert capsys.readouterr().err == ""
  assert cli.with_folder(["runs/ant"], "file") == ["file=runs/ant/old"]
  assert capsys.readouterr().err == "the newest run in 'runs/ant' is 'runs/ant/old'\n"
  checkpoint.write("a=1,seed=2", {})
  assert cli.with_folder(["a=1,seed=2"], "file") == ["file=a=1,seed=2"]
  for words in ([], ["checkpoint=runs/ant", "runs/ant"], ["--checkpoint=runs/ant"]):
    assert cli.with_folder(words, "checkpoint") == words
