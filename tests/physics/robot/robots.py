"""Robots as text: a dog of two joints a leg, as MJCF with motors and as URDF, and what lacks something."""

import math
from pathlib import Path

import mujoco

from physics.robot import Asked

ROOT = Path(__file__).parents[3]
DOG, BIPED, ANT, ARM = (ROOT / "assets" / name / "robot.xml" for name in ("quadruped", "biped", "ant", "arm"))
CORNERS = {"fl": (0.2, 0.1), "fr": (0.2, -0.1), "rl": (-0.2, 0.1), "rr": (-0.2, -0.1)}


SIX = {**CORNERS, "ml": (0, 0.15), "mr": (0, -0.15)}


def mjcf(
  *, base="<freejoint/>", world="", actuators=True, after="", foot='name="{leg}_foot"', corners=CORNERS
):
  """Return a dog with straight legs of 0.4 m, whose thighs and shanks turn about y; shanks bend back."""
  legs = "".join(
    f"""<body name="{leg}_thigh" pos="{x} {y} 0">
      <joint name="{leg}_hip" axis="0 1 0" range="-90 90" damping="0.1"/>
      <geom type="capsule" size="0.02" fromto="0 0 0 0 0 -0.2" mass="0.5"/>
      <body name="{leg}_shank" pos="0 0 -0.2">
        <joint name="{leg}_knee" axis="0 1 0" range="-150 -10" damping="0.1"/>
        <geom type="capsule" size="0.01" fromto="0 0 0 0 0 -0.18" mass="0.2"/>
        <geom {foot.format(leg=leg)} type="sphere" size="0.02" pos="0 0 -0.2" mass="0.1"/>
      </body></body>"""
    for leg, (x, y) in corners.items()
  )
  motors = "".join(
    f'<motor name="{leg}_{part}" joint="{leg}_{part}" gear="10" ctrlrange="-3 3"/>'
    for leg in corners
    for part in ("hip", "knee")
  )
  return f"""<mujoco><compiler autolimits="true"/><worldbody>{world}
    <body name="trunk" pos="0 0 0.5">{base}<geom type="box" size="0.25 0.1 0.05" mass="6"/>{legs}</body>
    </worldbody><actuator>{motors if actuators else ""}</actuator>{after}</mujoco>"""


def lowered(text):
  """Return a dog whose trunk has its origin on the ground: all it carries is half a metre higher."""
  for x, y in CORNERS.values():
    text = text.replace(f'pos="{x} {y} 0"', f'pos="{x} {y} 0.5"')
  text = text.replace('size="0.25 0.1 0.05"', 'size="0.25 0.1 0.05" pos="0 0 0.5"')
  return text.replace('name="trunk" pos="0 0 0.5"', 'name="trunk"')


def spider(ways):
  """Return a robot whose legs of three joints are drawn flat, in the direction ways(x, y) from a corner."""
  legs = ""
  for leg, (x, y) in CORNERS.items():
    dx, dy = ways(x, y)

    def rod(length, dx=dx, dy=dy):
      return f'<geom type="capsule" size="0.02" fromto="0 0 0 {length * dx} {length * dy} 0" mass="0.1"/>'

    bend = f'axis="{-dy} {dx} 0" range="-140 140"'
    legs += f"""<body name="{leg}_coxa" pos="{x} {y} 0"><joint name="{leg}_yaw" axis="0 0 1" range="-40 40"/>
      {rod(0.05)}<body name="{leg}_thigh" pos="{0.05 * dx} {0.05 * dy} 0"><joint name="{leg}_hip" {bend}/>
      {rod(0.15)}<body name="{leg}_shank" pos="{0.15 * dx} {0.15 * dy} 0"><joint name="{leg}_knee" {bend}/>
      {rod(0.2)}</body></body></body>"""
  return f"""<mujoco><compiler autolimits="true"/><worldbody><body name="trunk"><freejoint/>
    <geom type="box" size="0.25 0.1 0.04" mass="3"/>{legs}</body></worldbody></mujoco>"""


def wheel(joint=""):
  """Return the end of a dog's legs: a wheel below the shank."""
  return f"""type="sphere" size="0.005" mass="0.01"/><body name="{{leg}}_wheel" pos="0 0 -0.2">
    <joint name="{{leg}}_roll" axis="0 1 0" {joint}/><geom type="cylinder" size="0.05 0.01" zaxis="0 1 0"
    mass="0.1"/></body><geom """


TWO = {"l": (0, 0.15), "r": (0, -0.15)}
DISC = 'type="cylinder" size="0.1 0.02" zaxis="0 1 0"'


def rover(shape=DISC, *, joint='axis="0 1 0"', corners=CORNERS, drive='velocity kv="1"', more=""):
  """Return a trunk on four driven wheels with a radius of 0.1 m; `more` is inside the trunk."""
  wheels = "".join(
    f"""<body name="{name}" pos="{x} {1.6 * y} 0"><joint name="{name}_roll" {joint}/>
      <geom {shape} mass="0.5"/></body>"""
    for name, (x, y) in corners.items()
  )
  drives = "".join(f'<{drive} joint="{name}_roll"/>' for name in corners)
  ring = [(0.1 * math.cos(k * math.pi / 16), 0.1 * math.sin(k * math.pi / 16)) for k in range(32)]
  tyre = " ".join(f"{x} {y} {z}" for y in (-0.02, 0.02) for x, z in ring)
  return f"""<mujoco><asset><mesh name="tyre" vertex="{tyre}"/></asset><worldbody><body name="car">
    <freejoint/><geom type="box" size="0.3 0.1 0.05" mass="8"/>{wheels}{more}</body></worldbody>
    <actuator>{drives}</actuator></mujoco>"""


def urdf():
  """Return the same dog as URDF, where the feet are fixed to the shanks."""

  def link(name, mass, shape, z):
    inertia = 'ixx="0.001" iyy="0.001" izz="0.001" ixy="0" ixz="0" iyz="0"'
    return f"""<link name="{name}"><inertial><origin xyz="0 0 {z}"/><mass value="{mass}"/><inertia {inertia}/>
      </inertial><collision><origin xyz="0 0 {z}"/><geometry>{shape}</geometry></collision></link>"""

  def joint(name, parent, child, place, limit="", kind="revolute"):
    return f"""<joint name="{name}" type="{kind}"><parent link="{parent}"/><child link="{child}"/>
      <origin xyz="{place}"/><axis xyz="0 1 0"/>{limit}</joint>"""

  parts = [link("trunk", 6, '<box size="0.5 0.2 0.1"/>', 0)]
  for leg, (x, y) in CORNERS.items():
    rod = '<cylinder radius="0.01" length="0.16"/>'
    parts += [link(f"{leg}_thigh", 0.5, rod, -0.1), link(f"{leg}_shank", 0.2, rod, -0.1)]
    parts += [link(f"{leg}_foot", 0.1, '<sphere radius="0.02"/>', 0)]
    hip, knee = (
      f'<limit lower="{low}" upper="{high}" effort="30" velocity="9"/>'
      for low, high in ((-1.5, 1.5), (-2.6, -0.2))
    )
    parts += [joint(f"{leg}_hip", "trunk", f"{leg}_thigh", f"{x} {y} 0", hip)]
    parts += [joint(f"{leg}_knee", f"{leg}_thigh", f"{leg}_shank", "0 0 -0.2", knee)]
    parts += [joint(f"{leg}_ankle", f"{leg}_shank", f"{leg}_foot", "0 0 -0.2", kind="fixed")]
  return f'<robot name="dog">{"".join(parts)}</robot>'


def asked(folder, text, **given):
  """Write a robot's text into a folder, and return what asks for it."""
  file = folder / ("dog.urdf" if text.startswith("<robot") else "dog.xml")
  file.write_text(text)
  return Asked(str(file), **given)


def at_home(spec, seconds=2.0):
  """Return the data of a model that was at home for some time."""
  mj = spec.copy().compile()
  data = mujoco.MjData(mj)
  mujoco.mj_resetDataKeyframe(mj, data, 0)
  mujoco.mj_forward(mj, data)
  for _ in range(round(seconds / mj.opt.timestep)):
    mujoco.mj_step(mj, data)
  return data
