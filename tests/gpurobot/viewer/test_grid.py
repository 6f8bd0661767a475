from types import SimpleNamespace

import mujoco
import numpy as np
import pytest
import viser

from gpurobot.deploy import trained
from gpurobot.viewer.browser import Browser
from gpurobot.viewer.framing import find_robot
from gpurobot.viewer.grid import Grid, cells
from gpurobot.viewer.player import Player

ON_A_POST = """
  <mujoco>
    <worldbody>
      <geom type="plane" size="0 0 1"/>
      <body pos="3 0 0" euler="0 0 90">
        <geom type="box" size="0.5 0.1 1" pos="0 0 1"/>
        <body pos="0 0 2"><joint name="swing"/><geom size="0.1"/></body>
      </body>
    </worldbody>
    <actuator><motor joint="swing"/></actuator>
  </mujoco>"""
HILLS = """<geom type="hfield" hfield="hills"/>"""
ASSET = """<asset><hfield name="hills" nrow="2" ncol="2" size="4 4 1 0.1" elevation="0 0 0 1"/></asset>"""


@pytest.fixture(scope="module")
def server():
  server = viser.ViserServer(host="localhost", port=8600, verbose=False)
  yield server
  server.stop()


def stage_of(text, num_envs):
  model = mujoco.MjModel.from_xml_string(text)
  data = mujoco.MjData(model)
  mujoco.mj_forward(model, data)
  task = SimpleNamespace(num_envs=num_envs)
  return SimpleNamespace(model=model, data=data, robot=find_robot(model), task=task)


def test_a_grid_is_about_as_long_as_wide():
  assert cells(4, np.array([2.0, 3.0])).tolist() == [[0, 0, 0], [2, 0, 0], [4, 0, 0], [0, 3, 0]]
  long = cells(9, np.array([9.0, 1.0]))
  assert long[:, 0].tolist() == [0] * 9
  assert long[:, 1].tolist() == list(range(9))
  assert cells(1, np.array([1.0, 5.0])).tolist() == [[0, 0, 0]]


def test_environments_are_set_apart_around_the_selected_one_with_what_they_stand_on(server):
  grid = Grid(server, stage_of(ON_A_POST, 4))
  ((copies, _),) = grid._copies
  assert not copies.visible
  moved = grid.show(True, 2)
  assert copies.visible
  assert moved[2].tolist() == [0, 0, 0]
  gaps = np.linalg.norm(moved[:, None] - moved[None], axis=2)[~np.eye(4, dtype=bool)]
  assert gaps.min() > 1.0  # the post is 1 m wide
  assert copies.batched_positions == pytest.approx(moved[[0, 1, 3]] + [3, 0, 0])
  grid.show(False, 2)
  assert not copies.visible


def test_a_terrain_is_shared(server):
  grid = Grid(server, stage_of(ON_A_POST.replace("<worldbody>", f"{ASSET}<worldbody>{HILLS}"), 4))
  assert not grid.show(True, 1).any()
  assert not grid._copies


def test_the_page_draws_the_others_in_their_places(monkeypatch):
  settings = trained.parse(trained.PolicySettings(), ["demo=cartpole"])
  player = Player(trained.load(settings, 3, trained.Engine.mujoco))
  browser = Browser(player, "demo", "localhost", 8610)
  drawn = []
  monkeypatch.setattr(browser.scene, "update_from_arrays", lambda places, *_: drawn.append(places.copy()))
  player.look_at(1)
  browser._others.value = True
  browser._draw()
  browser.server.stop()
  cart = browser.rendered.model.body("cart").id
  assert drawn[0][:, cart, 0] == pytest.approx(player.task.sim.qpos[:, 0].numpy())
  assert drawn[0][1, cart, 1] == 0
  assert np.diff(drawn[0][:, cart, 1]).min() > 0.5
