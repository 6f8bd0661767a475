import pytest
from PIL import Image

from gpurobot import record
from tests.gpurobot import hopping_box, seeing_box
from tests.mistakes.told import told

BOX = f"task={hopping_box.__file__}"
SMALL = ("engine=mujoco", "seconds=0.3", "fps=10", "width=32", "height=24")


@pytest.fixture(scope="module")
def video(box_run, tmp_path_factory, drawing):
  path = tmp_path_factory.mktemp("video") / "box.gif"
  record.main([f"checkpoint={box_run}", BOX, f"video={path}", "num_envs=4", *SMALL])
  return path


def test_a_video_shows_a_grid_of_moving_robots(video):
  with Image.open(video) as image:
    assert (image.n_frames, image.size) == (3, (64, 48))
    frames = []
    for index in range(3):
      image.seek(index)
      frames.append(image.convert("RGB").tobytes())
  assert len(set(frames)) == 3


@pytest.mark.parametrize(("words", "size"), [((), (51, 24)), (("sight=false",), (32, 24))])
def test_a_video_shows_what_the_policy_sees(seeing_run, tmp_path, drawing, words, size):
  path = tmp_path / "box.gif"
  record.main([f"checkpoint={seeing_run}", f"task={seeing_box.__file__}", f"video={path}", *SMALL, *words])
  with Image.open(path) as image:
    assert image.size == size


def test_mistakes_are_one_line(box_run, capsys):
  words = [f"checkpoint={box_run}", BOX, *SMALL]
  for wrong, message in {
    "video=box.mp3": "video=box.mp3 is none of .mp4, .gif, .webp; the nearest is '.mp4'",
    "engine=gymnasium": "engine=gymnasium is for policies of the tasks gym/*; this task is",
    "camera=abowe": "camera=abowe: the model has no such camera; the nearest is 'above'",
  }.items():
    assert told(capsys, record.main, [*words, wrong]).startswith(message)
