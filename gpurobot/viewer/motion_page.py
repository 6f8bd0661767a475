"""Page that plays motions: a robot posed by a clip, and beside it one with servos that follow the clip."""

import time
from collections.abc import Sequence

import mjviser
import mujoco
import numpy as np
import viser

import physics
from gpurobot.viewer.access import Access, aspect_of, guarded_servers
from gpurobot.viewer.framing import ahead, find_robot, view
from gpurobot.viewer.scenery import dressed, sky
from tasks.motion.clip import Clip, states

ASIDE = np.array([0.0, 1.5, 0.0])  # place of the robot that its servos move [m]
STATE = ("qpos", "qvel", "ctrl")
DRAWN = 1 / 30  # shortest time between two frames of the page [s]


class MotionPage:
  """Server of a page that plays clips of a robot, again and again."""

  def __init__(
    self, scene: mujoco.MjSpec, model: physics.Model, clips: Sequence[Clip], host: str, port: int
  ) -> None:
    """Serve at `host`, at `port` or the next free one; `model` is the scene's."""
    self.model = dressed(scene)  # its additions come last, so states of `model` fit
    self.clips = {clip.name: (*states(clip, model), 1.0 / clip.fps) for clip in clips}
    self.controlled = model.jnt_qposadr[model.mj.actuator_trnid[:, 0]]
    self.driven = model.jnt_dofadr[model.mj.actuator_trnid[:, 0]]
    stiffness, damping = -model.actuator_biasprm[:, 1:3].T
    self.lead = damping / stiffness  # lag of a servo [nu] [s]
    with guarded_servers(Access(host), lambda process: process):
      self.server = viser.ViserServer(host=host, port=port, label="motion", verbose=False)
    self.address = f"http://{host}:{self.server.get_port()}"
    self.server.scene.set_background_image(sky())
    self.scene = mjviser.ViserMujocoScene(self.server, self.model, 2)
    self.posed, self.moved = mujoco.MjData(self.model), mujoco.MjData(self.model)
    self._chosen = self.server.gui.add_dropdown("Clip", list(self.clips))
    self._paused = self.server.gui.add_checkbox("Pause", initial_value=False)
    self._status = self.server.gui.add_markdown("")
    self.start()
    self.server.on_client_connect(self._greet)

  def start(self) -> None:
    """Begin the chosen clip, with both robots in its first frame."""
    self.name = self._chosen.value if self._chosen.value in self.clips else next(iter(self.clips))
    self.qpos, self.qvel, self.step = self.clips[self.name]
    self.frame = 0
    mujoco.mj_resetData(self.model, self.moved)
    self.moved.qpos[:], self.moved.qvel[:] = self.qpos[0], self.qvel[0]

  def advance(self) -> None:
    """Go to the next frame; at the end of the clip, or where another is chosen, start again."""
    if self.frame + 1 >= len(self.qpos) or self._chosen.value != self.name:
      self.start()
    self.frame += 1
    self.posed.qpos[:] = self.qpos[self.frame]
    mujoco.mj_kinematics(self.model, self.posed)
    target = self.qpos[self.frame, self.controlled] + self.lead * self.qvel[self.frame, self.driven]
    self.moved.ctrl[:] = target
    end = self.frame * self.step
    while self.moved.time < end - self.model.opt.timestep / 2:
      mujoco.mj_step(self.model, self.moved)

  def draw(self) -> None:
    """Send both robots to the page."""
    places = np.stack([self.posed.xpos, self.moved.xpos + ASIDE])
    places[1, 0] -= ASIDE  # the world itself stays
    turns = np.stack([self.posed.xmat, self.moved.xmat]).reshape(2, -1, 3, 3)
    none = np.zeros((2, 0, 3)), np.zeros((2, 0, 4))
    states = (np.stack([getattr(data, name) for data in (self.posed, self.moved)]) for name in STATE)
    self.scene.update_from_arrays(places, turns, *none, 0, *states)
    self._status.content = f"{self.name}: {self.frame * self.step:.2f} s"

  def run(self) -> None:
    """Play at real time until Ctrl-C."""
    drawn = 0.0
    try:
      while True:
        begun = time.monotonic()
        if not self._paused.value:
          self.advance()
        if begun - drawn >= DRAWN:
          drawn = begun
          self.draw()
        time.sleep(max(0.0, self.step - (time.monotonic() - begun)))
    except KeyboardInterrupt:
      self.server.stop()

  def _greet(self, client: viser.ClientHandle) -> None:
    """Point a new client's camera at the robot."""
    mujoco.mj_forward(self.model, self.posed)
    camera = view(self.model, self.posed, find_robot(self.model), aspect_of(client))
    client.camera.position = camera.lookat - camera.distance * ahead(camera)
    client.camera.look_at = camera.lookat
