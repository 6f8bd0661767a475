import json
import shutil

import train
from gpurobot.run import checkpoint, divergence_dumps
from tests.gpurobot import fragile

TASK = f"task={fragile.__file__}"
WORDS = [TASK, "num_envs=8", "threads=1", "ppo.horizon=4", "log_every=1"]


def test_training_goes_on_and_keeps_what_led_to_it(tmp_path):
  train.main([*WORDS, "max_iterations=3", f"run_dir={tmp_path}"])
  summary = json.loads((tmp_path / "summary.json").read_text())
  assert summary["iterations"] == 3
  files = sorted(path.name for path in (tmp_path / divergence_dumps.FOLDER).iterdir())
  assert files == [f"{iteration:06d}-{env}.pt" for iteration in (1, 2) for env in (1, 5)]
  (warning,) = [text for text in summary["warnings"] if "replay file=" in text]
  assert warning.startswith("2 environment(s) diverged and were reset; training goes on; ")
  assert warning.endswith(
    f"python -m gpurobot.replay file={tmp_path / divergence_dumps.FOLDER / '000001-5.pt'} {TASK}"
  )
  saved = checkpoint.read(tmp_path / divergence_dumps.FOLDER / "000001-1.pt")
  assert (saved["env"], saved["iteration"]) == (1, 1)
  assert saved["states"]["qpos"].shape == (3, 2)
  assert saved["states"]["qvel"].isinf().all(1).tolist() == [False, False, True]
  assert saved["reward"].shape == (3,)


def test_a_full_folder_takes_no_more(tmp_path, monkeypatch):
  monkeypatch.setattr(divergence_dumps, "MOST", 3)
  train.main([*WORDS, "max_iterations=3", f"run_dir={tmp_path / 'run'}"])
  assert len(list((tmp_path / "run" / divergence_dumps.FOLDER).iterdir())) == 3
  shutil.rmtree(tmp_path / "run" / divergence_dumps.FOLDER)
  train.main([TASK, f"resume={tmp_path / 'run'}", "max_iterations=4", "env.keep_states=0"])
  assert not (tmp_path / "run" / divergence_dumps.FOLDER).exists()
