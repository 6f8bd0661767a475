import mujoco

from gpurobot.viewer.native import Window

RIGHT, LEFT = 262, 263


def press(window, key):
  window._pressed.put(key)
  window.turn()


def test_keys_do_what_the_page_s_buttons_do(make_player):
  player = make_player(3)
  window = Window(player)
  window.turn()
  assert player.time == player.task.dt
  press(window, ord(" "))
  assert player.time == player.task.dt
  press(window, RIGHT)
  assert player.index == 1
  press(window, LEFT)
  press(window, LEFT)
  assert player.index == 2
  assert window.rendered.data.qpos.tolist() == player.task.sim.qpos[2].tolist()
  press(window, ord("P"))
  assert player.task.sim.qvel[2, 6:8].norm() > 0.9
  press(window, ord("R"))
  assert player.time == 0
  press(window, ord("X"))
  press(window, ord(" "))
  assert player.time == player.task.dt


def test_what_the_policy_sees_lies_along_the_upper_edge(seeing_player, make_player):
  area = mujoco.MjrRect(10, 20, 400, 160)
  assert Window(make_player()).overlay(area) == []
  placed = Window(seeing_player).overlay(area)
  places = [(rect.left, rect.bottom, rect.width, rect.height) for rect, _ in placed]
  assert places == [(10, 140, 64, 40), (74, 140, 64, 40)]
  assert all(image.shape == (rect.height, rect.width, 3) for rect, image in placed)
