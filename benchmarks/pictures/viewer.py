"""Picture of the viewer's page for docs/watch.md: python -m benchmarks.pictures.viewer.

Chromium draws it in software, as the tests do, so it takes no display and no GPU.
"""

import io
import shutil
import sys
import time
from pathlib import Path

import numpy as np
from PIL import Image
from playwright import sync_api

from benchmarks.pictures.tasks import FOLDER, QUALITY
from benchmarks.report import line, start_whole
from gpurobot.deploy import trained
from gpurobot.viewer.browser import Browser
from gpurobot.viewer.player import Player

DEMO, NUM_ENVS, SELECTED, SECONDS = "ball_balance", 16, 10, 0.6
SIZE: sync_api.ViewportSize = {"width": 1000, "height": 600}  # [pixels]
ZOOM = 1500  # turns of the wheel, away from the robot [pixels]
SOFTWARE = ["--no-sandbox", "--use-angle=swiftshader", "--enable-unsafe-swiftshader"]
PORT = 8700  # or the next free one
STEADY = 5.0  # time for which the page has to stay the same after the robots stop [s]
PATH = FOLDER.parent / "videos" / "page.webp"


def shot(page: sync_api.Page) -> Image.Image:
  """Return a screenshot of the page."""
  return Image.open(io.BytesIO(page.screenshot(timeout=0))).convert("RGB")


def settled(browser: Browser, page: sync_api.Page) -> Image.Image:
  """Return a screenshot once the page has stayed the same for a while, as it loads and fades in."""
  before, since = shot(page), time.monotonic()
  while time.monotonic() < since + STEADY:
    browser.turn()
    now = shot(page)
    if np.abs(np.asarray(now, int) - np.asarray(before, int)).max() > 1:
      since = time.monotonic()
    before = now
  return before


def run(path: Path = PATH) -> None:
  """Run a demo, pause it, and save a picture of its page."""
  chromium = shutil.which("chromium") or sys.exit("error: Chromium is missing: apt-get install chromium")
  settings = trained.parse(trained.PolicySettings(), [f"demo={DEMO}"])
  player = Player(trained.load(settings, NUM_ENVS, trained.Engine.mujoco))
  browser = Browser(player, f"runs/{DEMO}", "localhost", PORT)
  browser._others.value, browser._index.value = True, SELECTED
  player.look_at(SELECTED)
  while player.time < SECONDS:
    player.step()
  browser._paused.value = True
  with sync_api.sync_playwright() as playwright:
    window = playwright.chromium.launch(executable_path=chromium, args=SOFTWARE, timeout=0)
    page = window.new_page(viewport=SIZE)
    page.set_default_timeout(0)
    page.goto(browser.address)
    page.get_by_label("Pause").wait_for()
    browser.turn()
    for notice in page.locator(".mantine-Notification-closeButton").all():
      notice.click()
    page.mouse.move(SIZE["width"] / 4, SIZE["height"] / 2)
    page.mouse.wheel(0, ZOOM)
    settled(browser, page).save(path, quality=QUALITY, method=6)
    window.close()
  browser.server.stop()
  line("page.bytes", path.stat().st_size)


if __name__ == "__main__":
  start_whole(run)
