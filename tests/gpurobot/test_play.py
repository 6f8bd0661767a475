import sys

import pytest

from gpurobot import play
from gpurobot.viewer import browser, native
from tests.gpurobot import hopping_box
from tests.mistakes.told import told

BOX = f"task={hopping_box.__file__}"


@pytest.fixture
def shown(monkeypatch):
  """Let views end at once; return which were opened, with their players."""
  opened = []
  for kind in (browser.Browser, native.Window):
    monkeypatch.setattr(kind, "run", lambda view: opened.append(view))  # noqa: PLW0108 a method
  yield opened
  for view in opened:
    if isinstance(view, browser.Browser):
      view.server.stop()


def test_a_page_is_served_where_it_is_said(box_run, shown, capsys):
  play.main([f"checkpoint={box_run}", BOX, "engine=mujoco", "num_envs=3", "port=8300"])
  (view,) = shown
  port = view.server.get_port()
  assert view.player.task.num_envs == 3
  assert f"open http://localhost:{port}; from another machine, first: ssh -L {port}:localhost:{port} " in (
    capsys.readouterr().out
  )


def test_the_native_window_opens_where_it_is_asked_for(box_run, shown, capsys):
  play.main([f"checkpoint={box_run}", BOX, "engine=mujoco", "num_envs=3", "viewer=native"])
  assert isinstance(shown[0], native.Window)
  assert "space: pause" in capsys.readouterr().out


def test_without_a_display_it_is_said_what_to_do(box_run, monkeypatch, capsys):
  monkeypatch.setenv("DISPLAY", "nowhere:9")
  monkeypatch.delenv("WAYLAND_DISPLAY", raising=False)
  words = [f"checkpoint={box_run}", BOX, "engine=mujoco", "num_envs=1", "viewer=native"]
  assert told(capsys, play.main, words).startswith("viewer=native needs a display")


def test_a_missing_library_is_named_with_what_installs_it(box_run, monkeypatch, capsys):
  monkeypatch.delitem(sys.modules, "gpurobot.viewer.browser")
  monkeypatch.setitem(sys.modules, "mjviser", None)
  line = told(capsys, play.main, [f"checkpoint={box_run}", BOX, "engine=mujoco"])
  assert line == "mjviser is missing: pip install 'gpurobot[viewer]'"
