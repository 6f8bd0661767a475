"""Arms as text: three hinges with a gripper, as MJCF with motors and as URDF, and what lacks something."""

from pathlib import Path

from physics.robot import Asked

LINKS = (("turn", "0 0 1", "-170 170"), ("shoulder", "0 1 0", "-100 100"), ("elbow", "0 1 0", "-10 150"))
FINGERS = "".join(
  f"""<body name="{side}_part" pos="0 {y} 0.05"><joint name="{side}" type="slide" axis="0 1 0"
    range="0 0.02"/><geom type="box" size="0.005 0.005 0.02" mass="0.02"/></body>"""
  for side, y in (("left", 0.02), ("right", -0.02))
)
JAW = """<body name="jaw_part" pos="0 0.02 0.05"><joint name="gripper" axis="1 0 0" range="0 90"/>
  <geom type="box" size="0.005 0.005 0.02" mass="0.02"/></body>"""


def mjcf(*, base="", tip='<site name="tool_site" pos="0 0 0.1"/>', hand=FINGERS, after="", actuators=True):
  """Return an arm of two links of 0.3 m on a turning base, with a hand of 0.1 m."""
  link = """<geom type="capsule" size="0.03" fromto="0 0 0 0 0 {length}" mass="{mass}"/>"""
  parts, ends = "", ""
  for (name, axis, limits), length, mass in zip(LINKS, (0.1, 0.3, 0.3), (2, 1, 0.6), strict=True):
    height = {"turn": 0.1, "shoulder": 0.1, "elbow": 0.3}[name]
    parts += f"""<body name="{name}_link" pos="0 0 {height}"><joint name="{name}" axis="{axis}"
      range="{limits}" damping="0.1" armature="0.01"/>{link.format(length=length, mass=mass)}"""
    ends += "</body>"
  hand = f'<body name="hand" pos="0 0 0.3"><geom size="0.03" mass="0.2"/>{tip}{hand}</body>'
  motors = "".join(f'<motor name="{name}" joint="{name}" ctrlrange="-40 40"/>' for name, *_ in LINKS)
  return f"""<mujoco><compiler autolimits="true"/><worldbody><body name="base">{base}
    <geom type="cylinder" size="0.06 0.05" pos="0 0 0.05" mass="3"/>{parts}{hand}{ends}</body></worldbody>
    <actuator>{motors if actuators else ""}</actuator>{after}</mujoco>"""


def urdf(tool="tool0"):
  """Return the same arm as URDF, without fingers; its tool is a frame that is fixed to the last link."""

  def link(name, length, mass):
    inertia = 'ixx="0.01" iyy="0.01" izz="0.005" ixy="0" ixz="0" iyz="0"'
    return f"""<link name="{name}"><inertial><origin xyz="0 0 {length / 2}"/><mass value="{mass}"/>
      <inertia {inertia}/></inertial><collision><origin xyz="0 0 {length / 2}"/>
      <geometry><cylinder radius="0.03" length="{length}"/></geometry></collision></link>"""

  parts, parent = [link("base", 0.1, 3)], "base"
  for (name, axis, limits), length, mass in zip(LINKS, (0.1, 0.3, 0.3), (2, 1, 0.6), strict=True):
    low, high = (3.14159 / 180 * float(limit) for limit in limits.split())
    height = {"turn": 0.1, "shoulder": 0.1, "elbow": 0.3}[name]
    parts += [link(f"{name}_link", length, mass)]
    parts += [
      f"""<joint name="{name}" type="revolute"><parent link="{parent}"/><child link="{name}_link"/>
      <origin xyz="0 0 {height}"/><axis xyz="{axis}"/>
      <limit lower="{low}" upper="{high}" effort="40" velocity="2"/></joint>"""
    ]
    parent = f"{name}_link"
  parts += [
    f"""<link name="{tool}"/><joint name="flange" type="fixed"><parent link="{parent}"/>
    <child link="{tool}"/><origin xyz="0 0 0.4"/></joint>"""
  ]
  return f'<robot name="arm">{"".join(parts)}</robot>'


def write(folder: Path, text: str) -> str:
  """Write an arm's text into a folder, and return the path of the file."""
  file = folder / ("arm.urdf" if text.startswith("<robot") else "arm.xml")
  file.write_text(text)
  return str(file)


def asked(folder: Path, text: str, **given) -> Asked:
  """Write an arm's text into a folder, and return what asks for it."""
  return Asked(write(folder, text), **given)
