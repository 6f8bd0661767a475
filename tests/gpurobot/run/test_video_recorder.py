import pytest
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

import train
from gpurobot.run import checkpoint, video_recorder
from tests.gpurobot import toy

WORDS = (f"task={toy.__file__}", "num_envs=16", "ppo.minibatches=1", "record_every=2", "log_every=1")
DRAW = """
import sys
from PIL import Image
video = dict(word.split("=", 1) for word in sys.argv[1:])["video"]
frames = [Image.new("RGB", (16, 12), (shade, 0, 0)) for shade in (0, 200)]
frames[0].save(video, save_all=True, append_images=frames[1:])
"""


@pytest.fixture
def run(tmp_path, monkeypatch, capsys, keep_signal_handlers):
  """Return how to train in a folder where videos are drawn by this program; it returns what was printed."""

  def train_with(program, *words, patience=600.0):
    monkeypatch.setattr(video_recorder, "PROGRAM", ("-c", program))
    monkeypatch.setattr(video_recorder, "PATIENCE", patience)
    assert train.main([*WORDS, f"run_dir={tmp_path}", "max_iterations=2", *words]) == 0
    return " ".join(capsys.readouterr().out.split())

  return train_with


def test_the_policy_and_its_video_are_kept_and_shown_in_tensorboard(run, tmp_path):
  assert "warning" not in run(DRAW)
  videos = tmp_path / "videos"
  assert sorted(path.name for path in videos.iterdir()) == ["000002.gif", "000002.pt"]
  kept, last = (checkpoint.read(place)["learner"] for place in (videos / "000002.pt", tmp_path))
  assert "optimizer" in last
  of_training = {"iteration", "learned_rewards", "optimizer", "random", "ranks", "schedule", "shuffle"}
  assert {*kept} == {*last} - of_training
  for name, weights in kept["network"].items():
    assert (weights == last["network"][name]).all()
  events = EventAccumulator(str(tmp_path), size_guidance={"images": 0}).Reload()
  (image,) = events.Images("policy")
  assert (image.width, image.height, image.step) == (16, 12, 2 * 16 * toy.PPO["horizon"])
  assert image.encoded_image_string == (videos / "000002.gif").read_bytes()


def test_a_video_that_fails_is_a_warning(run, tmp_path):
  printed = run("raise SystemExit('error: no offscreen renderer works here')")
  assert f"warning: no video of '{tmp_path}/videos/000002.pt': no offscreen renderer works here" in printed
  assert "no offscreen renderer works here" in (tmp_path / "summary.json").read_text()


def test_the_end_waits_for_the_last_video_but_not_for_long(run):
  printed = run("import time; time.sleep(600)", patience=0.1)
  assert "it took more than 0.1 s after the end of training" in printed


def test_videos_that_come_too_fast_are_left_out(run, tmp_path):
  """The first is drawn when the fifth iteration is over; the fourth asked for another one."""
  slow = (
    "import pathlib, time\n"
    f"while '\\n5,' not in pathlib.Path({str(tmp_path / 'metrics.csv')!r}).read_text():\n"
    "  time.sleep(0.05)\n"
  )
  assert run(slow + DRAW, "max_iterations=6").count("a video takes longer than record_every iterations") == 1


def test_a_full_disk_is_a_warning(run, monkeypatch):
  save = checkpoint.save

  def fail(path, *content):
    if path.parent.name == video_recorder.FOLDER:
      raise OSError("no space left on device")
    save(path, *content)

  monkeypatch.setattr(checkpoint, "save", fail)
  assert "no space left on device" in run(DRAW)


def test_no_videos_unless_asked_for(run, tmp_path):
  run("raise SystemExit('error: not asked for')", "record_every=null")
  assert not (tmp_path / "videos").exists()
