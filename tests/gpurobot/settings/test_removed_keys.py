import dataclasses
import json

import pytest
import torch

import train
from gpurobot.device.distributed import World
from gpurobot.learn import discriminator, loss, optimizer, rnd
from gpurobot.learn.off_policy import base, setup
from gpurobot.run import checkpoint
from gpurobot.settings.config import ConfigError, TrainConfig, assign, leaves
from gpurobot.settings.removed_keys import CONSTANTS, RENAMED
from gpurobot.shell import cli
from tasks import load, motion_track
from tests.gpurobot import toy
from tests.mistakes.told import told

TOY = f"task={toy.__file__}"
VALUES = {
  "ppo.lr_min": loss.LR_MIN,
  "ppo.rnd.updates": rnd.UPDATES,
  "ppo.rnd.samples": rnd.SAMPLES,
  "ppo.amp.weight_decay": discriminator.WEIGHT_DECAY,
  "ppo.amp.replay": discriminator.REPLAY,
}
OFF_POLICY = {
  "priority_steps": setup.PRIORITY_STEPS,
  "policy_tau": optimizer.SHARE,
  "max_grad_norm": base.MAX_GRAD_NORM,
}


def parse(*words: str) -> TrainConfig:
  return cli.parse([TOY, *words], load, World())[0]


@pytest.fixture
def older(tmp_path):
  """Folder of a run of a version that had the keys, with the values of the constants."""
  train.main([TOY, "num_envs=8", "max_iterations=1", f"run_dir={tmp_path / 'run'}"])
  rewrite(tmp_path / "run", CONSTANTS | {"sac.quiet_envs": 3})
  return tmp_path / "run"


def rewrite(folder, values):
  """Change the settings that a run has saved."""
  content = checkpoint.read(folder)
  config = {key: value for key, value in content["config"].items() if key not in RENAMED.values()} | values
  torch.save(content | {"config": config}, folder / checkpoint.NAME)
  (folder / "config.json").write_text(json.dumps(config))


def test_constants_are_those_of_the_code():
  assert (
    VALUES | {f"{name}.{key}": OFF_POLICY[key] for name in ("sac", "td3") for key in OFF_POLICY} == CONSTANTS
  )
  known = leaves(TrainConfig(env=motion_track.Config()))
  assert known.keys() & {*CONSTANTS, *RENAMED} == set()
  assert known.keys() >= {*RENAMED.values()}


@pytest.mark.parametrize("value", ["1e-6", "1"])
def test_a_word_or_file_with_a_key_that_is_gone_ends_in_its_constant(value, tmp_path):
  file = tmp_path / "mine.yaml"
  file.write_text(f"ppo: {{lr_min: {value}}}")
  for word, start in ((f"ppo.lr_min={value}", ""), (f"config={file}", "a file of config=...: ")):
    with pytest.raises(ConfigError, match=f"^{start}ppo.lr_min is gone: it is 1e-06 always$"):
      parse(word)


def test_an_old_name_carries_its_value_over(tmp_path):
  file = tmp_path / "mine.yaml"
  file.write_text("sac.quiet_envs: 4")
  for word in ("sac.quiet_envs=4", f"config={file}"):
    assert parse("algorithm=sac", word).sac.greedy_envs == 4


def test_a_task_keeps_a_setting_that_has_the_old_name_of_anothers():
  own = dataclasses.make_dataclass("Own", [("joint_offset", float, 0.1)])
  assert assign(TrainConfig(env=own()), {"env.joint_offset": 0.3}).env.joint_offset == 0.3
  mimic = cli.parse(["task=humanoid_mimic", "env.joint_offset=0.02"], load, World())[0]
  assert mimic.env.encoder_bias == 0.02


def test_a_run_of_an_older_version_is_resumed_repeated_and_read(older):
  assert parse(f"resume={older}").sac.greedy_envs == 3
  assert parse(f"config={older / 'config.json'}").sac.greedy_envs == 3
  assert train.main([TOY, f"resume={older}", "max_iterations=2"]) == 0


def test_other_values_of_an_older_run_are_told_and_its_policy_is_read(older, capsys):
  rewrite(older, {"ppo.amp.replay": 16})
  line = told(capsys, train.main, [TOY, f"resume={older}", "max_iterations=2"])
  assert line == (
    f"'{older}' does not fit this training: ppo.amp.replay is gone: it is 32 always; "
    f"start a new run by checkpoint={older}"
  )
  with pytest.raises(ConfigError, match=r"ppo.amp.replay is gone: it is 32 always$"):
    parse(f"config={older / 'config.json'}")
  assert train.main([TOY, f"checkpoint={older}", "max_iterations=0", f"run_dir={older.parent / 'new'}"]) == 0
