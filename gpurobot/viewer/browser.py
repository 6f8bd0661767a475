"""Viewer in the browser: the scene and a control panel."""

import math
import random
import time
from collections import deque
from collections.abc import Callable, Collection
from pathlib import Path
from queue import SimpleQueue
from typing import Any

import mjviser
import numpy as np
import viser

from gpurobot.settings.config import ConfigError
from gpurobot.viewer.access import Access, aspect_of, guarded_servers
from gpurobot.viewer.command_panel import CommandPanel, within
from gpurobot.viewer.framing import ahead
from gpurobot.viewer.gamepad import Gamepad
from gpurobot.viewer.grid import Grid
from gpurobot.viewer.offscreen import Picture, fit
from gpurobot.viewer.player import Player, checkpoints
from gpurobot.viewer.scenery import sky
from gpurobot.viewer.task_scene import TaskScene

DRAWN, PLOTTED = 1 / 30, 1 / 5  # shortest time between two frames, two plots [s]
REMEMBERED = 400  # control steps in a plot
CURVES = 8  # largest number of curves in a plot of observations
COLOURS = ("#1f77b4", "#ff7f0e", "#2ca02c", "#d62728", "#9467bd", "#8c564b", "#e377c2", "#7f7f7f")
REWARDS = "reward terms"
IMAGE_SIZE = (256, 192)  # largest width and height of an image that the policy sees [pixels]
WEIGHT = 0.5  # length of the arrow of a contact force as large as the robot's weight [m]
LABEL = 0.4  # height of a policy's name above its robot [m]


class Browser:
  """Server of a page that shows a player's robots; clicks are queued and handled between two steps."""

  def __init__(
    self, player: Player, source: str, host: str, port: int, allowed_hosts: Collection[str] = ()
  ) -> None:
    """Serve at `host`, at `port` or the next free one, to the browsers that `Access` allows.

    source: run folder or file of the checkpoint.
    """
    self.player, self.rendered, self.source = player, TaskScene(player.task), source
    self._gamepad = Gamepad()
    with guarded_servers(Access(host, allowed_hosts), self._gamepad.serve):
      self.server = viser.ViserServer(
        host=host, port=port, label=Path(player.config.task).stem, verbose=False
      )
    self.address = f"http://{host}:{self.server.get_port()}"
    self._clicks: SimpleQueue[Callable[[], None]] = SimpleQueue()
    self._drawn = self._plotted = 0.0
    model = self.rendered.model
    shapes = (model.nbody, 3), (model.nbody, 3, 3), (model.nmocap, 3), (model.nmocap, 4)
    self._poses = [np.zeros((player.task.num_envs, *shape)) for shape in shapes]
    self._make_scene()
    self.server.gui.configure_theme(show_share_button=False)
    self.server.gui.main_panel.dock_right()
    self._status = self.server.gui.add_markdown("")
    self._images = {
      name: self.server.gui.add_image(self._seen(image), label=name, format="png")
      for name, image in player.policy_images(0).items()
    }
    tabs = self.server.gui.add_tab_group()
    with tabs.add_tab("Play"):
      self._make_controls()
    self._plot = LivePlot(self.server, player, tabs.add_tab("Plot"))
    with tabs.add_tab("Show"):
      self.scene.create_overlay_gui()
    # Last, as it runs at once for connected clients.
    self.server.on_client_connect(lambda client: self._clicks.put(lambda: self._greet(client)))

  def _make_scene(self) -> None:
    """Add the robots and the scene to the page."""
    rendered = self.rendered
    # viser's page has a map of the surroundings, and fades in when it is loaded. A second map, which mjviser
    # would send, ends the fade where it is: on a busy machine the scene could stay at 5 % of its opacity.
    self.server.scene.configure_environment_map = lambda *_, **__: None
    self.server.scene.set_background_image(sky())
    self.scene = mjviser.ViserMujocoScene(self.server, rendered.model, self.player.task.num_envs)
    self.scene._tracked_body_id = rendered.robot.body  # by default it is the first moving body
    rendered.show(0)
    self._grid = Grid(self.server, rendered)
    weight = rendered.model.body_subtreemass[rendered.robot.body] * np.linalg.norm(rendered.model.opt.gravity)
    if weight:
      rendered.model.vis.map.force = WEIGHT / weight
    labelled = range(self.player.task.num_envs if self.player.rival else 0)
    self._labels = [self.server.scene.add_label(f"/fixed_bodies/label/{i}", self._side(i)) for i in labelled]

  def _side(self, index: int) -> str:
    """Return the checkpoint that acts in an environment."""
    return self.player.against if self.player.against and index % 2 else self.source

  def _greet(self, client: viser.ClientHandle) -> None:
    """Point a new client's camera at the robot."""
    camera = self.rendered.view(aspect_of(client))
    target = camera.lookat - self._place() * self._follow.value
    client.camera.fov = math.radians(self.rendered.model.vis.global_.fovy)
    client.camera.position = target - camera.distance * ahead(camera)
    client.camera.look_at = target

  def _place(self) -> np.ndarray:
    """Return the robot's position [3]; while the camera follows, this is the origin of the page."""
    return self.rendered.data.xpos[self.rendered.robot.body].copy()

  def _keep_view(self) -> None:
    """Keep the view of all cameras unchanged when following starts or stops."""
    shift = -self._place() if self._follow.value else self._place()
    for client in self.server.get_clients().values():
      client.camera.position = client.camera.position + shift  # its look_at point moves along

  def _make_controls(self) -> None:
    """Add the buttons and sliders of the panel."""
    gui, player = self.server.gui, self.player
    self._paused = gui.add_checkbox("Pause", False)
    self._on_click("Step", self._advance)
    self._on_click("Restart", player.restart)
    self._speed = gui.add_slider("Speed", 0.1, 2.0, 0.1, 1.0, hint="1: real time, if possible")
    last = max(1, player.task.num_envs - 1)
    self._index = gui.add_slider("Environment", 0, last, 1, 0, visible=player.task.num_envs > 1)
    rivals = player.rival is not None
    self._others = gui.add_checkbox("Show the others", rivals, visible=player.task.num_envs > 1)
    self._follow = gui.add_checkbox("Follow", self.rendered.robot.roams)
    self._follow.on_update(lambda _: self._clicks.put(self._keep_view))
    self._forces = gui.add_checkbox("Contact forces", False, hint="an arrow for each contact")
    self._forces.on_update(lambda _: self._clicks.put(self._show_forces))
    with gui.add_folder("Push"):
      strength = gui.add_slider("Speed [m/s]", 0.1, 5.0, 0.1, 1.0)
      self._on_click("Push", lambda: player.push(within(strength), random.uniform(-math.pi, math.pi)))
    self._command = None
    if player.commands:
      self._command = CommandPanel(self.server, player, player.commands, self.scene.fixed_bodies_frame.name)
    with gui.add_folder("Checkpoint"):
      self._checkpoint = gui.add_dropdown("Of this run", checkpoints(self.source))
      self._on_click("Load", lambda: self._load(self._checkpoint.value))

  def _show_forces(self) -> None:
    self.scene.show_contact_forces = self._forces.value

  def _on_click(self, label: str, act: Callable[[], None]) -> None:
    """Add a button; the loop calls `act` between two steps."""
    self.server.gui.add_button(label).on_click(lambda _: self._clicks.put(act))

  def _load(self, source: str) -> None:
    """Load another policy of the run, or show the error on the page; a client may ask for any text."""
    try:
      if source not in checkpoints(self.source):
        raise ConfigError(f"'{source}' is no checkpoint of this run")
      self.player.load(source)
    except ValueError as error:
      for client in self.server.get_clients().values():
        client.add_notification("Not loaded", str(error), color="red")
    self._checkpoint.options = checkpoints(self.source)  # a running training adds new ones

  def run(self) -> None:
    """Play until Ctrl-C, at the speed set on the page or as fast as the machine can."""
    try:
      while True:
        self.turn()
    except KeyboardInterrupt:
      self.server.stop()

  def turn(self) -> None:
    """Handle clicks, step once unless paused, draw, and wait until the next step is due."""
    start = time.monotonic()
    while not self._clicks.empty():
      self._clicks.get()()
    self.player.look_at(int(within(self._index)))
    if self._command:
      self._command.take_sticks(self._gamepad.take())
      self._command.apply()
    pause = DRAWN
    if not self._paused.value:
      self._advance()
      pause = self.player.task.dt / within(self._speed)
    if start - self._drawn >= DRAWN:
      self._drawn = start
      self._draw()
    if start - self._plotted >= PLOTTED:
      self._plotted = start
      self._plot.draw()
      self._draw_policy_images()
    time.sleep(max(0.0, pause - (time.monotonic() - start)))

  def _advance(self) -> None:
    self.player.step()
    self._plot.remember()

  def _draw(self) -> None:
    """Send the current states to the page."""
    player, rendered, scene = self.player, self.rendered, self.scene
    scene.show_only_selected = not self._others.value
    scene.camera_tracking_enabled = self._follow.value
    moved = self._grid.show(self._others.value, player.index)
    positions, turns, mocap_pos, mocap_quat = self._poses
    others = [index for index in range(player.task.num_envs) if index != player.index]
    for index in [*(others if self._others.value else []), player.index]:  # the selected one last: it stays
      rendered.show(index)
      data = rendered.data
      positions[index], turns[index] = data.xpos + moved[index], data.xmat.reshape(-1, 3, 3)
      mocap_pos[index], mocap_quat[index] = data.mocap_pos + moved[index], data.mocap_quat
    sim = player.task.sim
    state = (part.cpu().numpy() for part in (sim.qpos, sim.qvel, sim.ctrl))
    scene.update_from_arrays(positions, turns, mocap_pos, mocap_quat, player.index, *state)
    if self._command:
      self._command.draw(rendered.arrows)
    for index, label in enumerate(self._labels):
      label.position = positions[index, rendered.robot.body] + (0.0, 0.0, LABEL)
      label.visible = self._others.value or index == player.index
    self._status.content = (
      f"**{Path(player.config.task).stem}**, environment {player.index}: {player.time:.1f} s, step "
      f"{player.episode_steps} of the episode, return {player.episode_return:.1f}{self._duel()}"
    )

  def _seen(self, image: Picture) -> Picture:
    """Return a policy's image, scaled to fit the page."""
    return fit(image, *IMAGE_SIZE)

  def _draw_policy_images(self) -> None:
    """Send the policy's images of the selected environment."""
    for name, image in self.player.policy_images(self.player.index).items():
      self._images[name].image = self._seen(image)

  def _duel(self) -> str:
    """Return the mean returns of policy and rival so far, as lines of a list."""
    if not self.player.rival:
      return ""
    lines = [
      f"- {self._side(side)}: mean return {mean:.1f} of {count} episodes"
      for side, (mean, count) in enumerate(self.player.scores())
    ]
    return "\n\n" + "\n".join(lines)


class LivePlot:
  """Plot of the last steps: the reward terms, or a block of the observation."""

  def __init__(self, server: viser.ViserServer, player: Player, tab: viser.GuiTabHandle) -> None:
    """Add a menu of the possible curves to a tab."""
    self._server, self._player, self._tab = server, player, tab
    self._past: deque[tuple[float, str, dict[str, float]]] = deque(maxlen=REMEMBERED)  # time, choice, values
    self._names: list[str] = []
    with tab:
      self._choice = server.gui.add_dropdown("Curves of", [REWARDS, *player.observations()])
    self._chart: viser.GuiUplotHandle | None = None

  def remember(self) -> None:
    """Store the values of the current step."""
    chosen, blocks = self._choice.value, self._player.observations()
    values = dict(self._player.terms)
    if chosen in blocks:  # a client may send any text
      numbers = blocks[chosen][:CURVES].tolist()
      values = {f"{chosen} {index}": number for index, number in enumerate(numbers)}
    if self._past and self._past[-1][0] >= self._player.time:
      self._past.clear()  # the player was restarted
    self._past.append((self._player.time, chosen, values))

  def draw(self) -> None:
    """Draw the stored values of the chosen curves."""
    rows = [(when, values) for when, choice, values in self._past if choice == self._choice.value]
    if len(rows) < 2:
      return
    names = list(rows[-1][1])
    columns = [np.array([when for when, _ in rows])]
    columns += [np.array([values[name] for _, values in rows]) for name in names]
    if self._chart and names == self._names:
      self._chart.data = tuple(columns)
      return
    if self._chart:
      self._chart.remove()
    self._names = names
    series: list[dict[str, Any]] = [{"label": "s"}]
    for index, name in enumerate(names):
      dashes, colour = divmod(index, len(COLOURS))
      series.append({"label": name, "stroke": COLOURS[colour], "width": 1, "dash": [4 * dashes, 4 * dashes]})
    scales = {"x": {"time": False, "auto": True}}
    with self._tab:
      self._chart = self._server.gui.add_uplot(tuple(columns), tuple(series), scales=scales, height=300)
