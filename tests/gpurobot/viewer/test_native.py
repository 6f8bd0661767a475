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
  assert window.stage.data.qpos.tolist() == player.task.sim.qpos[2].tolist()
  press(window, ord("P"))
  assert player.task.sim.qvel[2, 6:8].norm() > 0.9
  press(window, ord("R"))
  assert player.time == 0
  press(window, ord("X"))
  press(window, ord(" "))
  assert player.time == player.task.dt
