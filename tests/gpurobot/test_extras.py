"""Packages of extras that are missing: told in one line, before anything is built."""

import sys

import pytest

import train
from gpurobot import extras, plot
from gpurobot.settings.config import ConfigError


@pytest.mark.parametrize("extra", ["wandb", "mlflow"])
def test_a_logger_without_its_package_names_the_extra(extra, monkeypatch, capsys):
  monkeypatch.setitem(extras.EXTRAS, extra, ("no_such_package",))
  with pytest.raises(SystemExit, match="2"):
    train.main(["task=cartpole", f"log.{extra}=ants"])
  told = f"error: no_such_package is missing: pip install 'gpurobot[{extra}]'\n"
  assert capsys.readouterr().err == told


def test_training_needs_no_tensorboard_and_plot_names_its_extra(tmp_path, monkeypatch, capsys):
  monkeypatch.setitem(extras.EXTRAS, "plot", ("tensorboard", "no_such_package"))
  for module in ("tensorboard", "gpurobot.run.tensorboard", "matplotlib.figure"):
    monkeypatch.setitem(sys.modules, module, None)  # to import it is an ImportError
  monkeypatch.setattr(extras.importlib.util, "find_spec", lambda _: None)
  train.main(["task=cartpole", "num_envs=64", "max_iterations=1", f"run_dir={tmp_path}"])
  assert "no events for TensorBoard are written: pip install 'gpurobot[plot]'" in capsys.readouterr().out
  assert not [*tmp_path.glob("events.*")]
  with pytest.raises(SystemExit, match="2"):
    plot.main([str(tmp_path), f"out={tmp_path / 'curve.png'}"])
  assert capsys.readouterr().err == "error: matplotlib.figure is missing: pip install 'gpurobot[plot]'\n"


def test_a_folder_is_no_package(tmp_path, monkeypatch):
  """W&B leaves a folder of its name where it is used."""
  (tmp_path / "left_behind").mkdir()
  monkeypatch.syspath_prepend(tmp_path)
  monkeypatch.setitem(extras.EXTRAS, "wandb", ("left_behind", "json"))
  assert extras.missing("wandb") == ["left_behind"]
  with pytest.raises(ConfigError, match="left_behind is missing: pip install"):
    extras.check("wandb")


def test_an_import_that_fails_in_the_block_names_the_extra():
  with pytest.raises(ConfigError, match=r"no_such_package is missing: pip install 'gpurobot\[ray\]'"):  # noqa: SIM117
    with extras.require_extra("ray"):
      import no_such_package  # noqa: F401
