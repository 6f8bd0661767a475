"""URDF files as they are found: packages, meshes, mimic joints, inertias, floating bases, servos, home."""

import re
import warnings

import mujoco
import numpy as np
import pytest
import trimesh

import physics
from physics.parity import MujocoSimulation
from physics.urdf import read_urdf

BOX = '<collision><geometry><box size="0.2 0.2 0.1"/></geometry></collision>'
INERTIAL = """<inertial><mass value="1"/>
  <inertia ixx="0.1" iyy="0.1" izz="0.1" ixy="0" ixz="0" iyz="0"/></inertial>"""
LIMIT = '<limit lower="-1" upper="2" effort="30"/>'


def link(name, content=INERTIAL):
  return f'<link name="{name}">{content}</link>'


def joint(name, parent, child, content="", kind="revolute", xyz="0 0 0.3"):
  limit = LIMIT if kind in ("revolute", "prismatic") else ""
  return f"""<joint name="{name}" type="{kind}"><parent link="{parent}"/><child link="{child}"/>
    <origin xyz="{xyz}"/><axis xyz="0 1 0"/>{limit}{content}</joint>"""


def mesh(filename, scale="1 1 1"):
  shape = f'<mesh filename="{filename}" scale="{scale}"/>'
  return f"{INERTIAL}<collision><geometry>{shape}</geometry></collision>"


ARM = (
  link("base", INERTIAL + BOX)
  + link("arm", INERTIAL + BOX)
  + link("hand")
  + joint("elbow", "base", "arm")
  + joint("wrist", "arm", "hand")
)


@pytest.fixture
def write(tmp_path):
  def write(content, name="robots/arm.urdf"):
    path = tmp_path / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f'<robot name="r">{content}</robot>')
    return path

  return write


@pytest.mark.parametrize("name", ["arm.urdf", "arm.URDF", "arm.urdf.xacro"])
def test_load_model_reads_a_urdf(write, name):
  model = physics.load_model(write(ARM, name))
  assert model.joint_names == ("elbow", "wrist")
  assert (model.nu, model.key_names) == (0, ("home",))


@pytest.mark.parametrize("where", ["above", "beside", "manifest", "given", "ros", "gazebo"])
def test_packages_are_found(write, tmp_path, monkeypatch, where):
  scheme = "model" if where == "gazebo" else "package"
  path = write(
    link("base") + link("arm", mesh(f"{scheme}://robots/meshes/a.stl")) + joint("j", "base", "arm")
  )
  folder = tmp_path / "far/robots" if where in ("given", "ros") else tmp_path / "robots"
  if where == "beside":
    path = path.rename(tmp_path / "arm.urdf")
  if where == "manifest":
    folder = tmp_path / "robots_of_all_kinds/robots_description"
  (folder / "meshes").mkdir(parents=True)
  (folder / "package.xml").write_text("<package><name> robots </name></package>")
  trimesh.creation.box((1, 2, 3)).export(folder / "meshes/a.stl")
  if where == "ros":
    monkeypatch.setenv("ROS_PACKAGE_PATH", f"{tmp_path}/none:{folder.parent}")
  mj = read_urdf(path, packages={"robots": folder} if where == "given" else None).compile()
  np.testing.assert_allclose(sorted(mj.geom_aabb[0, 3:]), [0.5, 1, 1.5], atol=1e-6)


def test_an_absent_mesh_is_named(write):
  path = write(link("base") + link("arm", mesh("package://none/a.stl")) + joint("j", "base", "arm"))
  message = (
    "link 'arm': no mesh 'package://none/a.stl': give packages={'none': '<folder>'}, or ROS_PACKAGE_PATH"
  )
  with pytest.raises(FileNotFoundError, match=re.escape(message)):
    physics.load_model(path)


def test_meshes_of_one_name_in_two_folders_stay_apart(write, tmp_path):
  for k, folder in enumerate(("left", "right"), start=1):
    (tmp_path / "robots" / folder).mkdir(parents=True)
    trimesh.creation.box((k, k, k)).export(tmp_path / "robots" / folder / "foot.stl")
  content = link("a", mesh("left/foot.stl")) + link("b", mesh("right/foot.stl")) + link("base")
  content += link("c", mesh("left/foot.stl", scale="3 3 3"))
  content += "".join(joint(f"to_{name}", "base", name) for name in "abc")
  mj = read_urdf(write(content)).compile()
  sizes = {mj.body(mj.geom_bodyid[g]).name: round(2 * float(mj.geom_aabb[g, 3]), 6) for g in range(mj.ngeom)}
  assert sizes == {"a": 1.0, "b": 2.0, "c": 3.0}


@pytest.mark.parametrize("ending", ["stl", "stl_ascii", "obj", "ply", "glb", "dae"])
def test_meshes_of_every_usual_format_have_the_same_hull(write, tmp_path, ending):
  (tmp_path / "robots").mkdir()
  name = f"foot.{ending.partition('_')[0]}"
  content = trimesh.creation.icosphere(1).export(file_type=ending)
  (tmp_path / "robots" / name).write_bytes(content.encode() if isinstance(content, str) else content)
  mj = read_urdf(write(link("base") + link("a", mesh(name)) + joint("j", "base", "a"))).compile()
  assert mj.mesh_vertnum[0] == 42
  np.testing.assert_allclose(np.linalg.norm(mj.mesh_vert, axis=1), 1, atol=1e-5)


def test_a_mimic_joint_follows(write):
  follow = '<mimic joint="elbow" multiplier="-0.5" offset="0.25"/>'
  content = ARM.replace(
    '<joint name="wrist" type="revolute">', f'<joint name="wrist" type="revolute">{follow}'
  )
  spec = read_urdf(write(content), gains=(500.0, 20.0), home={"elbow": 0.5})
  mj = spec.compile()
  assert mj.neq == 1  # and not another one of MuJoCo's own reader
  assert [mj.actuator(i).name for i in range(mj.nu)] == ["elbow"]
  np.testing.assert_allclose(mj.key_qpos[0], [0.5, 0.0])
  sim = MujocoSimulation(physics.load_model(spec), 1)
  sim.ctrl[:] = 1.0
  sim.step(2000)
  elbow, wrist = sim.qpos[0].tolist()
  assert elbow > 0.8
  assert wrist == pytest.approx(0.25 - 0.5 * elbow, abs=0.02)


def test_a_mimic_of_what_does_not_move_stays_at_its_offset(write):
  follow = '<mimic joint="no" offset="0.5"/>'
  content = ARM.replace(
    '<joint name="wrist" type="revolute">', f'<joint name="wrist" type="revolute">{follow}'
  )
  with pytest.warns(
    UserWarning, match="joint 'wrist' mimics 'no', which is no joint: it stays at its offset"
  ):
    assert read_urdf(write(content)).compile().key_qpos[0].tolist() == [0.0, 0.5]
  assert read_urdf(write(content.replace("revolute", "fixed"))).compile().neq == 0


def test_a_mimic_may_follow_a_later_one(write, recwarn):
  follow = [f'<mimic joint="{leader}" multiplier="2"/>' for leader in ("wrist", "tip")]
  content = link("base") + link("a") + link("b") + link("c")
  content += (
    joint("elbow", "base", "a", follow[0]) + joint("wrist", "a", "b", follow[1]) + joint("tip", "b", "c")
  )
  mj = read_urdf(write(content), home={"tip": 0.25}).compile()
  assert (mj.neq, mj.key_qpos[0].tolist()) == (2, [1.0, 0.5, 0.25])
  assert len(recwarn) == 0


@pytest.mark.parametrize("world", ["", link("world", "") + joint("hold", "world", "base", kind="fixed")])
def test_a_floating_base_stands_on_the_ground(write, world):
  path = write(world + ARM)
  assert read_urdf(path).compile().nq == 2
  mj = read_urdf(path, floating=True, home={"elbow": 0.5}).compile()
  assert (mj.nq, mj.nv, mj.jnt_type[0]) == (9, 8, mujoco.mjtJoint.mjJNT_FREE)
  assert mj.key_qpos[0, 2] == pytest.approx(0.05)  # half the height of the lowest box
  assert mj.key_qpos[0, 7:].tolist() == [0.5, 0.0]


def test_only_one_base_floats(write):
  with pytest.raises(ValueError, match="2 links have no parent: a robot has one base"):
    read_urdf(write(ARM + link("alone")), floating=True)
  twice = link("world", "") + ARM + joint("hold", "world", "base", kind="prismatic")
  with pytest.raises(ValueError, match="floating needs one fixed joint"):
    read_urdf(write(twice), floating=True)


def inertial(mass, moments):
  ixx, iyy, izz = moments
  return f"""<inertial><mass value="{mass}"/>
    <inertia ixx="{ixx}" iyy="{iyy}" izz="{izz}" ixy="0" ixz="0" iyz="0"/></inertial>"""


@pytest.mark.parametrize(
  ("moments", "expected"),
  [
    # second moments S = tr(I)/2 - I = (3.5, 3, -1.5): the last becomes 1e-6 (1 mm of 1 kg)
    ((1.5, 2.0, 6.5), (3.0 + 1e-6, 3.5 + 1e-6, 6.5)),
    ((0.0, 0.0, 0.0), (2e-6, 2e-6, 2e-6)),
    ((-1.0, 1.0, 1.0), (3e-6 - 1e-6, 1.5 + 1e-6, 1.5 + 1e-6)),  # S = (1.5, -0.5, -0.5)
    ((3.0, 4.0, 5.0), (3.0, 4.0, 5.0)),
  ],
)
def test_impossible_inertias_are_mended_and_others_stay(write, moments, expected):
  path = write(link("base") + link("arm", inertial(1.0, moments)) + joint("j", "base", "arm"))
  with warnings.catch_warnings(record=True) as notes:
    warnings.simplefilter("always")
    mj = read_urdf(path).compile()
  np.testing.assert_allclose(sorted(mj.body_inertia[-1]), sorted(expected), rtol=1e-6)
  assert mj.body_mass[-1] == 1.0
  assert [re.search(r"link 'arm': no rigid body", str(note.message)) is None for note in notes] == (
    [False] if any(moments) and moments != expected else []
  )


def test_what_moves_without_mass_gets_some(write):
  content = link("base") + link("slider", "") + link("arm") + link("frame", "") + link("tip", "")
  content += joint("x", "base", "slider", kind="prismatic") + joint("y", "slider", "arm")
  content += joint("f", "arm", "frame", kind="fixed") + joint("t", "arm", "tip", kind="fixed")
  with pytest.warns(UserWarning, match="link 'slider' moves without mass: it gets 0.001 kg") as notes:
    mj = read_urdf(write(content)).compile()
  assert len(notes) == 1
  assert mj.body_mass.tolist() == [0.0, 0.001, 1.0]


def test_links_may_have_one_inertial_alone(write):
  with pytest.warns(UserWarning, match="link 'arm' has 2 inertials: the first one counts"):
    read_urdf(write(link("base") + link("arm", INERTIAL * 2) + joint("j", "base", "arm")))
  lacking = link("base") + link("arm", '<inertial><mass value="1"/></inertial>') + joint("j", "base", "arm")
  with pytest.raises(ValueError, match="link 'arm': inertial lacks mass or inertia"):
    read_urdf(write(lacking))


def test_servos_hold_home_within_limits_and_effort(write):
  with pytest.warns(UserWarning, match="home: 'wrist' at 9 is beyond its limit: it is at 2"):
    spec = read_urdf(write(ARM), gains=(200.0, 10.0), home={"elbow": 0.5, "wrist": 9.0})
  mj = spec.compile()
  assert mj.key_ctrl[0].tolist() == mj.key_qpos[0].tolist() == [0.5, 2.0]  # at the limit
  assert mj.actuator_ctrlrange.tolist() == [[-1, 2]] * 2
  assert mj.jnt_actfrcrange.tolist() == [[-30, 30]] * 2
  sim = MujocoSimulation(physics.load_model(spec), 1)
  sim.qpos[:], sim.ctrl[:] = sim.qpos.new_tensor(mj.key_qpos), sim.ctrl.new_tensor(mj.key_ctrl)
  sim.step(1000)
  assert abs(float(sim.qpos[0, 0]) - 0.5) < 0.1


def slow(content, velocity="0.5", effort="30"):
  return content.replace('effort="30"', f'effort="{effort}" velocity="{velocity}"')


def test_servos_keep_limits_of_speed(write):
  found = {}
  for name, content in (("slow", slow(ARM)), ("fast", ARM)):
    model = physics.load_model(read_urdf(write(content), gains=(200.0, 10.0)))
    sim, speeds = MujocoSimulation(model, 1), []
    sim.ctrl[:] = 1.0
    for _ in range(150):
      sim.step(10)
      speeds.append(float(sim.qvel.abs().max()))
    assert model.mj.actuator_ctrlrange.tolist() == [[-1, 2]] * 2
    found[name] = max(speeds), sim.qpos.numpy()
  assert 0.49 < found["slow"][0] < 0.52  # a little more, where the weight drives
  assert found["fast"][0] > 2.5
  np.testing.assert_allclose(found["slow"][1], found["fast"][1], atol=1e-4)


@pytest.mark.parametrize(("effort", "gains"), [("30", None), ("0", (200.0, 10.0))])
def test_limits_of_speed_that_nothing_keeps_are_told(write, effort, gains, recwarn):
  read_urdf(write(slow(ARM, effort=effort).replace('"0.5"', '"0.4"', 1)), gains=gains)
  read_urdf(write(slow(ARM, "inf")))
  (note,) = recwarn
  assert "limits of speed of 2 joints, such as 0.4 of 'elbow', are" in str(note.message)


OVERLAPPING = ARM.replace('xyz="0 0 0.3"', 'xyz="0 0 0.09"')  # of boxes that are 0.1 high


def test_what_overlaps_at_home_is_told(write, recwarn):
  """MuJoCo exempts what one body carries, but not what the world does, into which a fixed base is merged."""
  path = write(OVERLAPPING)
  message = "at home the base and 'arm' overlap by 10.0 mm and are pushed apart: take floating=True"
  with pytest.warns(UserWarning, match=re.escape(message)) as notes:
    physics.load_model(path)
  assert len(notes) == 1
  recwarn.clear()
  read_urdf(path, floating=True)
  read_urdf(path, self_collision=False)
  read_urdf(write(ARM))
  assert len(recwarn) == 0


def test_links_that_overlap_at_home_are_told(write):
  """Neither carries the other: their base does."""
  content = ARM + link("other", INERTIAL + BOX) + joint("j", "base", "other", xyz="0.1 0 0.3")
  with pytest.warns(UserWarning, match="'arm' and 'other' overlap by .* mm") as notes:
    read_urdf(write(content), floating=True)
  assert "floating" not in str(notes[0].message)


def test_links_may_pass_through_each_other_but_not_through_others(write):
  far = link("tip", INERTIAL + BOX) + joint("t", "hand", "tip", xyz="0 0 -0.3")
  contacts = {}
  for collide in (True, False):
    spec = read_urdf(write(ARM + far), self_collision=collide)
    spec.worldbody.add_geom(type=mujoco.mjtGeom.mjGEOM_BOX, size=[1, 1, 0.1], pos=[0, 0, 0.4])
    mj = spec.compile()
    data = mujoco.MjData(mj)
    mujoco.mj_forward(mj, data)
    bodies = mj.geom_bodyid[data.contact.geom]
    contacts[collide] = bool((bodies > 0).all(axis=1).any()), bool((bodies == 0).any())
  assert contacts == {True: (True, True), False: (False, True)}


MIMIC = ARM.replace(
  '<joint name="wrist" type="revolute">',
  """<joint name="wrist" type="revolute">
  <mimic joint="elbow"/>""",
)
HALF = link("base") + link("arm", '<inertial><mass {}/><inertia ixx="{}"/></inertial>')
HALF += joint("elbow", "base", "arm")


@pytest.mark.parametrize(
  ("content", "message"),
  [
    (HALF.format('value="${m}"', 1), "link 'arm': mass value='${m}' is not a number"),
    (HALF.format("", 1), "link 'arm': mass value is missing"),
    (HALF.format('value="-1"', 1), "link 'arm': mass value=-1 is negative"),
    (HALF.format('value="1"', "nan"), "link 'arm': inertia ixx='nan' is not a number"),
    (MIMIC.replace('"elbow"/>', '"wrist"/>'), "joint 'wrist': mimic joint='wrist': name another joint"),
    (MIMIC.replace('"elbow"/>', '"elbow" offset="a"/>'), "joint 'wrist': mimic offset='a' is not a number"),
    (ARM + link("arm"), "2 links have the name 'arm': give each its own"),
    (ARM.replace("wrist", "elbow"), "2 joints have the name 'elbow': give each its own"),
    ("", "it has no links, so it is no robot: name the file that calls its macros"),
    (ARM.replace('effort="30"', 'velocity="fast"'), "joint 'elbow': limit velocity='fast' is not a number"),
    (ARM.replace("0 1 0", "0 0 0"), "Error: axis too small in joint, Element name 'elbow', id 0"),
  ],
)
def test_what_no_robot_can_have_is_told_in_one_line(write, content, message):
  path = write(content)
  for read in (physics.load_model, read_urdf):
    with pytest.raises(ValueError, match=re.escape(f"{path}: {message}")) as error:
      read(path)
    assert "\n" not in str(error.value)
    assert str(error.value).count(str(path)) == 1


@pytest.mark.parametrize(
  ("options", "message"),
  [
    ({"gains": 40.0}, "gains=40.0: write stiffness and damping"),
    ({"gains": (-40.0, 1.0)}, "gains=(-40.0, 1.0): write stiffness"),
    ({"home": [0.1, 0.2]}, "home=[0.1, 0.2]: write positions by joint"),
    ({"home": {"elbow": "up"}}, "home={'elbow': 'up'}: write positions by joint"),
    ({"home": {"wrist": 0.1}}, "home: joint 'wrist' follows 'elbow': give the position of that"),
    ({"home": {"ankle": 1.0}}, "home: no joint 'ankle'"),
    ({"packages": "robots"}, "packages='robots': write folders by package"),
  ],
)
def test_options_of_another_kind_are_told(write, options, message):
  with pytest.raises(ValueError, match=re.escape(message)):
    read_urdf(write(MIMIC), **options)


def test_limits_the_wrong_way_round_are_told(write):
  with pytest.warns(UserWarning, match="joint 'elbow': lower=3 is above upper=2: it has no limits"):
    read_urdf(write(ARM.replace('lower="-1"', 'lower="3"', 1)))


@pytest.mark.parametrize("name", ["foot.dae", "foot.glb", "foot.step"])
def test_a_mesh_that_cannot_be_read_is_named(write, name):
  path = write(link("base") + link("arm", mesh(name)) + joint("j", "base", "arm"))
  (path.parent / name).write_text("<COLLADA/>")
  with pytest.raises(
    ValueError, match=rf"{name}: this mesh cannot be read \(\w+\): write it anew, as STL or OBJ"
  ):
    physics.load_model(path)


@pytest.mark.parametrize(
  ("text", "message"),
  [
    ("<robot>", "this is not XML"),
    ("<mujoco/>", "the first element is <mujoco>: a URDF begins with <robot>"),
  ],
)
def test_what_is_no_urdf_is_told(tmp_path, text, message):
  path = tmp_path / "bad.urdf"
  path.write_text(text)
  with pytest.raises(ValueError, match=message):
    physics.load_model(path)
