"""Robot files that are changed before they are loaded."""

from pathlib import Path

import physics
from tasks.shared import mjcf

SHARED = '<mujoco><default><geom rgba="1 0 0 1"/></default></mujoco>'
ROBOT = """
<mujoco>
  <include file="shared.xml"/>
  <worldbody>
    <geom name="ball" size="0.1" pos="1 2 3"/>
    <camera name="gone"/>
    <body name="gone"><geom size="1"/></body>
    <body name="block" pos="4 5 6"><geom name="inner" size="1"/></body>
  </worldbody>
</mujoco>"""


def read(folder: Path):
  (folder / "shared.xml").write_text(SHARED)
  (folder / "robot.xml").write_text(ROBOT)
  return mjcf.read(folder / "robot.xml")


def test_files_beside_it_are_found_from_anywhere(tmp_path: Path):
  model = physics.load_model(mjcf.text(read(tmp_path)))
  assert model.mj.geom("ball").rgba.tolist() == [1, 0, 0, 1]


def test_elements_of_the_world_are_found_and_removed(tmp_path: Path):
  root = read(tmp_path)
  assert mjcf.find(root, "inner").get("size") == "1"
  mjcf.remove(root, "gone", "inner")
  model = physics.load_model(mjcf.text(root))
  assert "gone" not in model.body_names
  assert "inner" in model.geom_names
  assert model.mj.ncam == 0


def test_geoms_and_bodies_become_mocap_bodies_where_they_stand(tmp_path: Path):
  root = read(tmp_path)
  for name in ("ball", "block"):
    mjcf.make_movable(root, name)
  model = physics.load_model(mjcf.text(root))
  places = {
    name: model.mocap_pos0[model.body_mocapid[model.body_id(name)]].tolist() for name in ("ball", "block")
  }
  assert places == {"ball": [1, 2, 3], "block": [4, 5, 6]}
  assert model.geom_bodyid[model.geom_id("ball")] == model.body_id("ball")
