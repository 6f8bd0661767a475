import io
import shutil
import time
import urllib.error
import urllib.request

import numpy as np
import pytest
from PIL import Image
from playwright import sync_api

from gpurobot.viewer.browser import LABEL, Browser
from gpurobot.viewer.offscreen import fit
from gpurobot.viewer.player import Player

SOFTWARE = ["--no-sandbox", "--use-angle=swiftshader", "--enable-unsafe-swiftshader"]
HANG = 600_000  # what takes so long hangs, however busy the machine is [ms]


@pytest.fixture
def opened():
  """Return how to serve a player's page."""
  browsers = []

  def serve(player, run):
    browsers.append(Browser(player, str(run), "localhost", 8100))
    return browsers[-1]

  yield serve
  for browser in browsers:
    browser.server.stop()


@pytest.fixture
def browser(opened, make_player, box_run):
  return opened(make_player(), box_run)


PAD = "navigator.getGamepads = () => [null, window.pad ? {axes: window.pad} : null]"


@pytest.fixture(scope="module")
def window(chromium):
  with sync_api.sync_playwright() as playwright:
    window = playwright.chromium.launch(executable_path=chromium, args=SOFTWARE, timeout=HANG)
    yield window
    window.close()


@pytest.fixture
def page(browser, window):
  page = window.new_page(viewport={"width": 480, "height": 360})
  page.set_default_timeout(HANG)
  page.add_init_script(PAD)
  page.goto(browser.address)
  yield page
  page.close()


def red(page):
  """Return where the page is red [height, width] bool: the robot is, and not the orange of a notification."""
  shot = np.asarray(Image.open(io.BytesIO(page.screenshot(timeout=HANG))).convert("RGB")).astype(int)
  red, green, blue = shot[..., 0], shot[..., 1], shot[..., 2]
  return (red > np.maximum(green, blue) + 60) & (abs(green - blue) < 40)


def until(browser, holds):
  """Let the player play until something holds."""
  end = time.monotonic() + HANG / 1000
  while not holds():
    assert time.monotonic() < end
    browser.turn()


def test_a_page_shows_the_robot_and_its_buttons_work(browser, page):
  player: Player = browser.player
  pause = page.get_by_label("Pause")
  pause.wait_for()
  browser.turn()
  until(browser, lambda: red(page).sum() > 50)
  page.get_by_label("Follow").uncheck()
  until(browser, lambda: not browser._follow.value)
  first = red(page)
  player.push(3.0, 0.0)
  until(browser, lambda: (red(page) ^ first).sum() > 50)

  pause.check()
  until(browser, lambda: browser._paused.value)
  now = player.time
  browser.turn()
  assert player.time == now
  page.get_by_role("button", name="Step").click()
  until(browser, lambda: player.time > now)
  assert player.time == pytest.approx(now + player.task.dt)


def test_the_page_keeps_its_own_surroundings(browser):
  """A second map that arrives while the page fades in with the first would leave it faint."""
  messages = browser.server._websock_server.get_message_buffer().message_from_id.values()
  assert "EnvironmentMapMessage" not in {type(message).__name__ for message in messages}


def test_the_panel_moves_what_the_loop_does(browser, box_run, tmp_path):
  player = browser.player
  browser._index.value = 1
  browser._command.driven.value = True
  browser._command.sliders["forward"].value = 0.5
  browser.turn()
  assert player.index == 1
  assert player.task.command[1].tolist() == [0.5, 0, 0]
  assert browser._checkpoint.options == (str(box_run), str(box_run / "videos" / "000003.pt"))
  before = player.policy
  browser._load(browser._checkpoint.options[1])
  assert player.policy is not before
  before = player.policy
  browser._load("nowhere")
  browser._load(str(shutil.copy(box_run / "checkpoint.pt", tmp_path)))  # any text may be asked for
  assert player.policy is before
  browser._forces.value = True
  until(browser, lambda: browser.scene.show_contact_forces)


def test_keys_sliders_and_a_gamepad_give_the_command_that_an_arrow_shows(browser, page):
  sliders = browser._command.sliders
  assert list(sliders) == ["forward", "sideways"]  # nothing can be chosen for turning
  page.get_by_label("Pause").wait_for()
  browser.turn()
  page.locator("canvas").first.focus()
  page.keyboard.press("i")
  page.keyboard.press("l")
  until(browser, lambda: sliders["forward"].value > 0 > sliders["sideways"].value)
  assert browser.player.command == pytest.approx([0.2, -0.1, 0.0])
  browser._drawn = 0.0
  browser.turn()
  (base, end), (_, actual) = browser._command._node.points
  np.testing.assert_allclose(end - base, [0.12, -0.06, 0.0], atol=0.02)  # the box may have turned a bit
  assert not np.allclose(actual, end)
  page.evaluate("window.pad = [0.5, -1, 0, 0]")
  until(browser, lambda: browser.player.command == [1.0, -0.25, 0.0])
  page.evaluate("window.pad = [0.05, 0, 0, 0]")
  until(browser, lambda: browser.player.command == [0.0, 0.0, 0.0])
  sliders["forward"].value = 0.5
  browser.turn()
  assert browser.player.command == [0.5, 0.0, 0.0]  # a gamepad that lies still takes nothing away


def test_only_numbers_that_the_page_sends_are_taken_for_sticks(browser):
  own = {"X-Gamepad": "1"}  # an image of another site's page has no header of its own
  sent = [*((text, own, "400") for text in ("1,2,3", "1,2,3,x", "nan,0,0,0", "")), ("0,1,0,0", {}, "404")]
  for text, headers, status in sent:
    with pytest.raises(urllib.error.HTTPError, match=status):
      urllib.request.urlopen(urllib.request.Request(f"{browser.address}/gamepad?{text}", headers=headers))
    assert browser._gamepad.take() is None


def test_the_panel_shows_what_the_policy_sees(opened, seeing_player, seeing_run):
  browser = opened(seeing_player, seeing_run)
  assert list(browser._images) == ["view", "depth"]
  browser._index.value = 1
  browser.turn()
  browser._plotted = 0.0
  browser.turn()
  for name, image in seeing_player.policy_images(1).items():
    assert (browser._images[name].image == fit(image, 256, 192)).all()


def test_policy_and_rival_are_named_and_compared(opened, make_player, box_run):
  rival = str(box_run / "videos" / "000003.pt")
  browser = opened(make_player(4, rival), box_run)
  for _ in range(41):
    browser._advance()
  browser._draw()
  assert [label.text for label in browser._labels] == [str(box_run), rival] * 2
  assert all(label.visible for label in browser._labels)
  heights = [label.position[2] for label in browser._labels]
  np.testing.assert_allclose(heights, browser._poses[0][:, browser.rendered.robot.body, 2] + LABEL)
  assert f"- {rival}: mean return " in browser._status.content
  assert " of 2 episodes" in browser._status.content


def test_the_loop_survives_what_no_page_sends(browser):
  browser._index.value, browser._speed.value, browser._plot._choice.value = 7, 0.0, "nothing"
  browser.turn()
  assert browser.player.index == 1
  browser._plot.draw()


def test_plots_show_the_last_steps_of_what_is_chosen(browser):
  for _ in range(3):
    browser._advance()
  browser._plot.draw()
  time_, height, _effort = browser._plot._chart.data
  assert len(time_) == 3
  assert height[-1] == pytest.approx(browser.player.terms["height"])
  browser._plot._choice.value = "command"
  for _ in range(2):
    browser._advance()
  browser._plot.draw()
  assert len(browser._plot._chart.data) == 4
  assert len(browser._plot._chart.data[0]) == 2
  browser.player.restart()
  browser._advance()
  browser._plot.draw()
  assert len(browser._plot._past) == 1


def test_the_page_s_origin_goes_with_the_robot_that_is_followed(browser):
  browser._paused.value = True
  browser.player.task.sim.qpos[0, 7:9] = browser.player.task.sim.qpos.new_tensor([3.0, 2.0])
  browser._draw()
  assert browser.scene.fixed_bodies_frame.position[:2].tolist() == [-3, -2]
  browser._follow.value = False
  browser._draw()
  assert browser.scene.fixed_bodies_frame.position.tolist() == [0, 0, 0]
