"""Mistakes on the command line: the key is named, and what it could be."""

import os
import socket
from datetime import timedelta

import pytest

import train
from gpurobot.device import distributed
from tests.gpurobot import toy
from tests.mistakes.told import TOY, told

pytestmark = pytest.mark.usefixtures("keep_signal_handlers")
WORDS = {
  "--num_envs=4": "'--num_envs=4': keys have no dashes; write num_envs=4",
  "-seed": "'-seed': keys have no dashes; write seed=<value>",
  "num_env=4": "unknown key 'num_env'; the nearest is 'num_envs'",
  "lr=1e-3": "unknown key 'lr'; the nearest is 'ppo.lr'",
  "num_envs=many": "num_envs=many is not a whole number",
  "ppo.gamma=1.1": "ppo.gamma=1.1 is out of range; the nearest is 1",
  "ppo.lr=nan": "ppo.lr=nan is not a finite number",
  "ppo.lr_min=1": "ppo.lr_min is gone: it is 1e-06 always",
  "ppo.log_std_min=3": "ppo.log_std_init=0 must be greater than ppo.log_std_min=3",
  "ppo.hidden=64": "ppo.hidden=64 is not a list, each element a whole number",
  "ppo.hidden=[64,0]": "ppo.hidden=[64, 0] is out of range; the nearest is 1",
  "ppo.hidden=[64": "ppo.hidden=[64 is not a list, each element a whole number",
  "ppo.hidden=[1000000,1000000]": "ppo.hidden=[1000000, 1000000]: to train this network takes 16,000 GB",
  "ppo.layer_norm=maybe": "ppo.layer_norm=maybe is not true or false",
  "ppo.schedule=adaptiv": "ppo.schedule=adaptiv is not one of adaptive, constant; the nearest is 'adaptive'",
  "ppo.minibatches=3": "num_envs=64 does not divide evenly among 1 rank(s) and 3 minibatch(es) of ",
  "ppo.mirror_coef=1": "ppo.mirror_coef=1: the task has no mirror; write ppo.mirror_coef=0",
  "ppo.amp.style_weight=1": "ppo.amp.style_weight=1: the task has no style reference; write ",
  "ppo.horizon=100000000": "out of memory: lower num_envs or ppo.horizon (",
  "device=cuda:99": "device=cuda:99: this machine has ",
  "graphs=on": "graphs=on needs a CUDA device, not cpu; write graphs=auto",
  "task=Ant": "unknown task 'Ant'; nearest: ant",
  TOY.removesuffix(".py"): f"unknown task '{toy.__file__.removesuffix('.py')}'; the file is task=",
  "run_dir=???": "run_dir=??? is no value; write the value itself",
  "run_dir=${oc.env:HOME}": "run_dir=${oc.env:HOME}: ${...} is not expanded; write the value itself",
  "env.episode_steps=1e30": "env.episode_steps=1000000000000000019884624838656 is out of range",
  "seed=99999999999999999999": "seed=99999999999999999999 is out of range; the nearest is 184467440737",
}  # fmt: skip


@pytest.mark.parametrize(("word", "message"), WORDS.items(), ids=WORDS)
def test_in_a_word(word, message, capsys, tmp_path):
  given = [TOY, "device=cpu", "max_iterations=0", f"run_dir={tmp_path}"]
  words = [other for other in given if other.partition("=")[0] != word.partition("=")[0]]
  assert told(capsys, train.main, [*words, word]).startswith(message)


@pytest.mark.parametrize(("word", "message"), [
  (b"run_dir=\xff", "'run_dir=\\udcff' is not UTF-8 text; rename what it names"),
  (b"\xff=3", "'\\udcff=3' is not UTF-8 text; rename what it names"),
])  # fmt: skip
def test_in_bytes_that_are_no_text(word, message, capsys):
  given = [TOY] * (not word.startswith(b"task"))
  assert told(capsys, train.main, [*given, os.fsdecode(word)]).startswith(message)


@pytest.mark.parametrize(("words", "message"), [
  (["ppo.rnd.weight=1", "ppo.rnd.group=depth"], "ppo.rnd.group=depth: the task has the "),
  (["algorithm=sac", "ppo.rnd.weight=1"], "ppo.rnd.weight has no effect with algorithm=sac"),
  (["algorithm=td3", "ppo.amp.style_weight=1"], "ppo.amp.style_weight has no effect with "),
])  # fmt: skip
def test_in_two_words(words, message, capsys):
  assert told(capsys, train.main, [TOY, *words]).startswith(message)


STARTS = {  # torchrun's variables: the line
  "WORLD_SIZE=1": "WORLD_SIZE is set, but RANK is not; start the ranks by torchrun, or unset WORLD_SIZE",
  "WORLD_SIZE=2 RANK=0 LOCAL_RANK=0 LOCAL_WORLD_SIZE=1": "WORLD_SIZE is set, but MASTER_ADDR is not; start ",
  "WORLD_SIZE=1 RANK=3 LOCAL_RANK=0 LOCAL_WORLD_SIZE=1": "RANK=3 of WORLD_SIZE=1, LOCAL_RANK=0 of ",
  "WORLD_SIZE=2 RANK=x LOCAL_RANK=0 LOCAL_WORLD_SIZE=1": "RANK=x is not a whole number; start the ranks by ",
}


@pytest.mark.parametrize(("variables", "message"), STARTS.items(), ids=STARTS)
def test_in_the_variables_of_a_rank(variables, message, capsys, monkeypatch):
  for name in ("MASTER_ADDR", "MASTER_PORT"):
    monkeypatch.delenv(name, raising=False)
  for name, _, value in (word.partition("=") for word in variables.split()):
    monkeypatch.setenv(name, value)
  assert told(capsys, train.main, [TOY]).startswith(message)


def test_a_rank_that_never_comes_is_waited_for_aloud(capsys, monkeypatch):
  with socket.create_server(("127.0.0.1", 0)) as probe:
    port = probe.getsockname()[1]
  start = {"WORLD_SIZE": 2, "RANK": 0, "LOCAL_RANK": 0, "LOCAL_WORLD_SIZE": 2, "MASTER_ADDR": "127.0.0.1"}
  for name, value in {**start, "MASTER_PORT": port}.items():
    monkeypatch.setenv(name, str(value))
  monkeypatch.setattr(distributed, "PATIENCE", timedelta(seconds=1))
  monkeypatch.setattr(distributed, "NOTICE", 0.0)
  with pytest.raises(SystemExit) as end:
    train.main([TOY])
  assert end.value.code == 2
  notice, error = capsys.readouterr().err.splitlines()
  assert notice == f"rank 0 waits for the other ranks of 2 at 127.0.0.1:{port}, 0:00:01 at most"
  assert error.startswith(f"error: rank 0 could not join the other ranks of 2 at 127.0.0.1:{port} (")
