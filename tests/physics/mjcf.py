"""Random models: what to build is drawn by hypothesis, which can shrink it; the numbers come from seeds.

A model is a forest of up to 30 bodies with any joints, shapes and options that the engine supports. What
is in `EXTRAS` is drawn only on request, one kind at a time.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from hypothesis import strategies as st

JOINTS = ((), ("hinge",), ("slide",), ("ball",), ("hinge", "hinge"), ("slide", "hinge"), ("slide", "ball"))
ROOT_JOINTS = (*JOINTS, ("free",), ("free",), ("slide", "slide", "hinge"))
SHAPES = ("sphere", "capsule", "box", "cylinder", "ellipsoid")
STATIC_SHAPES = ("none", "plane", "plane", "tilted plane", "sphere", "capsule", "box")
# contype and conaffinity: planes meet all, spheres, capsules and boxes each other, cylinders spheres. What
# MuJoCo finds by iteration, capsules with cylinders, has no digits to compare in float64.
MASKS = {
  "plane": (5, 1),
  "sphere": (3, 1),
  "capsule": (1, 1),
  "box": (1, 1),
  "cylinder": (0, 6),
  "ellipsoid": (0, 4),
}
ALL_MEET = dict.fromkeys(MASKS, (1, 1))
EXTRAS = ("cranks", "spatial", "surfaces", "noslip", "searched")
ACTUATORS = ("motor", "position", "velocity", "general", "intvelocity", "pid", "dcmotor", "muscle")
JOINT_FEATURES = (
  "limit",
  "spring",
  "damping",
  "armature",
  "frictionloss",
  "reference",
  "offset",
  "solref",
  "yield",
)
GEOM_FEATURES = (
  "friction",
  "margin",
  "solref",
  "solimp",
  "priority",
  "condim",
  "second geom",
  "silent",
  "adhesion",
  "fluidshape",
)
FLAGS = ("eulerdamp", "refsafe", "filterparent", "gravity", "spring", "damper", "frictionloss", "limit")


class Numbers:
  """Random numbers as attribute text."""

  def __init__(self, seed: int) -> None:
    self.random = np.random.default_rng(seed)

  def uniform(self, low: float, high: float, count: int = 1) -> str:
    return " ".join(f"{x:.5g}" for x in self.random.uniform(low, high, count))

  def normal(self, scale: float, count: int = 3) -> str:
    return " ".join(f"{x:.5g}" for x in self.random.normal(0, scale, count))

  def one_of(self, *options: str) -> str:
    return options[self.random.integers(len(options))]


def solref(numbers: Numbers) -> str:
  time = f"{numbers.uniform(0.01, 0.1)} {numbers.uniform(0.3, 1.5)}"
  return numbers.one_of(time, f"-{numbers.uniform(100, 3000)} -{numbers.uniform(5, 100)}")


def solimp(numbers: Numbers) -> str:
  power = numbers.one_of("1", "2", "3", numbers.uniform(1, 4))
  low, high, width = numbers.uniform(0.1, 0.9), numbers.uniform(0.5, 0.99), numbers.uniform(0.001, 0.1)
  return f"{low} {high} {width} {numbers.uniform(0.1, 0.9)} {power}"


JOINT_ATTRIBUTES: dict[str, Callable[[Numbers], str]] = {
  "spring": lambda n: f'stiffness="{n.uniform(1, 50)}"',
  "damping": lambda n: f'damping="{n.uniform(0.01, 2)}"',
  "armature": lambda n: f'armature="{n.uniform(0.001, 0.5)}"',
  "frictionloss": lambda n: f'frictionloss="{n.uniform(0.01, 2)}"',
  "yield": lambda n: f'springyield="{n.uniform(0.01, 0.2)}"',
  "offset": lambda n: f'pos="{n.normal(0.05)}"',
  "solref": lambda n: f'solreflimit="{solref(n)}" solimpfriction="{solimp(n)}" margin="{n.uniform(0, 0.05)}"',
}
GEOM_ATTRIBUTES: dict[str, Callable[[Numbers], str]] = {
  "friction": lambda n: f'friction="{n.uniform(0.05, 2)} {n.uniform(0.001, 0.1)} {n.uniform(1e-4, 0.01)}"',
  "margin": lambda n: f'margin="{n.uniform(0, 0.05)}" gap="{n.one_of("0", n.uniform(0, 0.02))}"',
  "solref": lambda n: f'solref="{solref(n)}" solmix="{n.uniform(0.1, 3)}"',
  "solimp": lambda n: f'solimp="{solimp(n)}"',
  "priority": lambda n: f'priority="{n.one_of("1", "2")}"',
  "adhesion": lambda n: f'adhesion="{n.uniform(0.1, 3)}"',
  "condim": lambda n: f'condim="{n.one_of("1", "3", "4", "6")}"',
  "surfacevel": lambda n: f'surfacevel="{n.normal(1, 3)} {n.normal(3, 3)}"',
  "fluidshape": lambda n: f'fluidshape="ellipsoid" fluidcoef="{n.uniform(0, 2, 5)}"',
}


def joint(kind: str, name: str, features: set[str], numbers: Numbers) -> str:
  """Return a joint element; a free joint has no limit and no axis."""
  parts = [f'<joint name="{name}" type="{kind}"']
  if kind in ("hinge", "slide"):
    parts.append(f'axis="{numbers.normal(1)}"')
  if "limit" in features and kind != "free":
    low, high = numbers.uniform(-0.6, -0.1), numbers.uniform(0.2, 0.8)
    parts.append(f'range="{0 if kind == "ball" else low} {high}"')
  if "reference" in features and kind in ("hinge", "slide"):
    parts.append(f'ref="{numbers.uniform(-0.3, 0.3)}" springref="{numbers.uniform(-0.5, 0.5)}"')
  unfit = {"offset", "solref", "yield"} if kind == "free" else set()
  parts += [make(numbers) for feature, make in JOINT_ATTRIBUTES.items() if feature in features - unfit]
  return " ".join(parts) + "/>"


def geom(shape: str, features: set[str], numbers: Numbers, position: str = "0 0 0", name: str = "") -> str:
  """Return a geom element of some 10 cm; the feature "all meet" lets all shapes touch each other."""
  size = numbers.uniform(0.04, 0.12, 3)
  if shape.endswith("plane"):
    tilt = numbers.normal(0.2, 2) if shape == "tilted plane" else "0 0"
    shape, pose = "plane", f'type="plane" size="0 0 1" zaxis="{tilt} 1" pos="0 0 -0.5"'
  else:
    pose = f'type="{shape}" size="{size}" pos="{position}" quat="{numbers.normal(1, 4)}"'
  attributes = [make(numbers) for feature, make in GEOM_ATTRIBUTES.items() if feature in features]
  masks = ALL_MEET if "all meet" in features else MASKS
  contype, conaffinity = (0, 0) if "silent" in features else masks[shape]
  return f'<geom {name} {pose} contype="{contype}" conaffinity="{conaffinity}" {" ".join(attributes)}/>'


def subset(options: tuple[str, ...], most: int) -> st.SearchStrategy[set[str]]:
  return st.sets(st.sampled_from(options), max_size=most)


@st.composite
def body(draw: st.DrawFn, index: int) -> dict[str, Any]:
  """Draw what a body consists of: parent (-1: the world), joints, shape, features, seed of its numbers."""
  parent = draw(st.integers(-1, index - 1))
  return {
    "parent": parent,
    "joints": draw(st.sampled_from(ROOT_JOINTS if parent < 0 else JOINTS)),
    "shape": draw(st.sampled_from(SHAPES)),
    "joint features": draw(subset(JOINT_FEATURES, 4)),
    "geom features": draw(subset(GEOM_FEATURES, 3)),
    "gravcomp": draw(st.sampled_from(("", "", "", 'gravcomp="1"', 'gravcomp="0.4"'))),
    "seed": draw(st.integers(0, 2**16)),
  }


@st.composite
def models(draw: st.DrawFn, most_bodies: int = 30, extra: str = "") -> str:
  """Draw a model, as MJCF text, with one of the EXTRAS if it is named."""
  count = draw(st.integers(1, most_bodies))
  bodies = [draw(body(index)) for index in range(count)]
  statics = draw(st.lists(st.sampled_from(STATIC_SHAPES), max_size=3))
  features = draw(subset(GEOM_FEATURES, 3))
  names = [f"j{i}.{k}" for i, part in enumerate(bodies) for k in range(len(part["joints"]))]
  scalars = [
    f"j{i}.{k}"
    for i, part in enumerate(bodies)
    for k, kind in enumerate(part["joints"])
    if kind in ("hinge", "slide")
  ]
  numbers = Numbers(draw(st.integers(0, 2**16)))
  if feature := {"surfaces": "surfacevel", "searched": "all meet"}.get(extra):
    for each in (features, *(part["geom features"] for part in bodies)):
      each.add(feature)
  world = "\n".join(
    geom(shape, features, numbers, numbers.normal(0.3)) for shape in statics if shape != "none"
  )
  roots = "\n".join(_nested(bodies, i) for i, part in enumerate(bodies) if part["parent"] < 0)
  return f"""<mujoco>
  <compiler angle="radian"/>
  {draw(options('noslip_iterations="3"' if extra == "noslip" else ""))}
  <worldbody>
<site name="s" pos="{numbers.normal(0.5)}"/>
{world}
{roots}
  </worldbody>
  {draw(actuators(names, count)) if names else ""}
  {draw(cranks(count)) if extra == "cranks" else ""}
  {draw(paths(bodies)) if extra == "spatial" else ""}
  {draw(tendons(scalars)) if scalars else ""}
  {draw(equalities(count, scalars))}
</mujoco>"""


def _nested(bodies: list[dict[str, Any]], index: int) -> str:
  """Return a body element with all below it."""
  part = bodies[index]
  numbers = Numbers(part["seed"])
  root = part["parent"] < 0
  position = numbers.normal(0.5 if root else 0.15)
  lines = [f'<body name="b{index}" pos="{position}" quat="{numbers.normal(1, 4)}" {part["gravcomp"]}>']
  lines += [
    joint(kind, f"j{index}.{k}", part["joint features"], numbers) for k, kind in enumerate(part["joints"])
  ]
  name = f'name="g{index}"'
  lines.append(geom(part["shape"], part["geom features"], numbers, numbers.normal(0.05), name))
  if "second geom" in part["geom features"]:
    features = part["geom features"] & {"surfacevel", "all meet"}
    lines.append(geom(numbers.one_of(*SHAPES), features, numbers, numbers.normal(0.1)))
  # The second is outside of the geom: MuJoCo ends its search for a path through one at 1e-6.
  lines.append(f'<site name="s{index}" pos="{numbers.normal(0.1)}"/><site name="o{index}" pos="0.4 0 0"/>')
  children = [i for i, other in enumerate(bodies) if other["parent"] == index]
  return "\n".join([*lines, *(_nested(bodies, child) for child in children), "</body>"])


@st.composite
def options(draw: st.DrawFn, more: str = "") -> str:
  """Draw the option element, with some more attributes."""
  numbers = Numbers(draw(st.integers(0, 2**16)))
  disabled = " ".join(f'{flag}="disable"' for flag in sorted(draw(subset(FLAGS, 2))))
  integrator = draw(st.sampled_from(("Euler", "implicitfast", "RK4")))
  cone = draw(st.sampled_from(("pyramidal", "elliptic")))
  step = draw(st.sampled_from(("0.001", "0.002", "0.005")))
  fluid = draw(st.sampled_from(("", "", 'density="1000" viscosity="0.1" wind="0.5 0 -0.2"')))
  return f"""<option timestep="{step}" integrator="{integrator}" cone="{cone}"
    impratio="{numbers.uniform(0.5, 5)}" gravity="{numbers.uniform(-1, 1, 2)} -9.81" {fluid} {more}>
    <flag {disabled}/></option>"""


@st.composite
def actuators(draw: st.DrawFn, joints: list[str], bodies: int) -> str:
  """Draw an actuator element for up to six of the joints, and adhesion of up to two bodies."""
  lines = []
  for name in draw(st.lists(st.sampled_from(joints), max_size=6)):
    numbers = Numbers(draw(st.integers(0, 2**16)))
    kind = draw(st.sampled_from(ACTUATORS))
    own = {
      "motor": "",
      "position": f'kp="{numbers.uniform(1, 50)}" kv="{numbers.uniform(0, 3)}"',
      "velocity": f'kv="{numbers.uniform(0.1, 5)}"',
      "general": f'gaintype="affine" gainprm="{numbers.uniform(-1, 1, 3)}" biastype="affine" '
      f'biasprm="{numbers.uniform(-1, 1, 3)}" '
      + numbers.one_of("", 'dyntype="filterexact" dynprm="0.02"', 'dyntype="filter" dynprm="0.1"'),
      "intvelocity": f'kp="{numbers.uniform(1, 20)}" ' + numbers.one_of("", 'actrange="-0.5 0.5"'),
      "pid": f'kp="{numbers.uniform(1, 20)}" kv="0.5" '
      + numbers.one_of('input="vel ff"', 'ki="3" imax="0.1" slewmax="2"', 'delay="0.0075" nsample="9"'),
      "dcmotor": f'resistance="2" motorconst="{numbers.uniform(0.1, 1)}" '
      + numbers.one_of("", 'inductance="0.01"', 'input="pos" controller="1 2 0.1 0 0 5"', 'cogging="1 2 3"'),
      "muscle": f'lengthrange="{numbers.uniform(-2, -0.2)} {numbers.uniform(0.3, 2)}" '
      + numbers.one_of(f'force="{numbers.uniform(1, 30)}"', f'scale="{numbers.uniform(1, 9)}"')
      + numbers.one_of("", ' tausmooth="0.2"', ' timeconst="0.03 0.05" range="0.5 1.2" fvmax="1.5"'),
    }[kind]
    limits = ["", 'ctrlrange="-0.5 0.8"', f'forcerange="-{numbers.uniform(0.5, 3)} 2"']
    limit = numbers.one_of(*limits[: 2 if kind == "dcmotor" else 3])
    target = numbers.one_of("joint", "jointinparent")
    lines.append(f'<{kind} {target}="{name}" gear="{numbers.normal(1, 6)}" {own} {limit}/>')
  sticky = draw(st.lists(st.integers(0, bodies - 1), max_size=2, unique=True))
  lines += [f'<adhesion body="b{index}" ctrlrange="0 1" gain="{index + 1}"/>' for index in sticky]
  return "<actuator>\n" + "\n".join(lines) + "\n</actuator>"


TENDON_ATTRIBUTES: dict[str, Callable[[Numbers], str]] = {
  "spring": lambda n: f'stiffness="{n.uniform(1, 50)}" springlength="{n.one_of("0.1", "-0.1 0.2")}"',
  "yield": lambda n: f'springyield="{n.uniform(0.01, 0.2)}"',
  "damping": lambda n: f'damping="{n.uniform(0.01, 2)}"',
  "frictionloss": lambda n: f'frictionloss="{n.uniform(0.01, 2)}" solreffriction="{solref(n)}"',
  "limit": lambda n: f'range="{n.uniform(-0.5, -0.1)} {n.uniform(0.1, 0.5)}" margin="{n.uniform(0, 0.05)}"',
}


@st.composite
def tendons(draw: st.DrawFn, joints: list[str]) -> str:
  """Draw a tendon element: up to two fixed tendons over some of the hinges and slides."""
  lines = []
  for index in range(draw(st.integers(0, 2))):
    over = draw(st.lists(st.sampled_from(joints), min_size=1, max_size=3, unique=True))
    features = draw(subset(tuple(TENDON_ATTRIBUTES), 3))
    numbers = Numbers(draw(st.integers(0, 2**16)))
    attributes = " ".join(make(numbers) for name, make in TENDON_ATTRIBUTES.items() if name in features)
    path = "".join(f'<joint joint="{name}" coef="{numbers.normal(1, 1)}"/>' for name in over)
    lines.append(f'<fixed name="t{index}" {attributes}>{path}</fixed>')
  return "<tendon>\n" + "\n".join(lines) + "\n</tendon>"


@st.composite
def cranks(draw: st.DrawFn, bodies: int) -> str:
  """Draw an actuator element: up to three slider-cranks between sites of bodies, or of the world."""
  lines = []
  for _ in range(draw(st.integers(1, 3))):
    sites = draw(st.lists(st.sampled_from(("", *range(bodies))), min_size=2, max_size=2, unique=True))
    numbers = Numbers(draw(st.integers(0, 2**16)))
    own = numbers.one_of("<motor", f'<position kp="{numbers.uniform(1, 20)}"', '<velocity kv="1"')
    lines.append(
      f'{own} cranksite="s{sites[0]}" slidersite="s{sites[1]}" cranklength="{numbers.uniform(0.1, 1)}" '
      f'gear="{numbers.uniform(-2, 2)}"/>'
    )
  return "<actuator>\n" + "\n".join(lines) + "\n</actuator>"


@st.composite
def paths(draw: st.DrawFn, bodies: list[dict[str, Any]]) -> str:
  """Draw a tendon element: up to three spatial tendons, with inertia where no geom is on their path."""
  lines = []
  for index in range(draw(st.integers(1, 3))):
    ends = st.sampled_from(("", *range(len(bodies))))
    sites = draw(st.lists(ends, min_size=2, max_size=5, unique=True))
    features = draw(subset(tuple(TENDON_ATTRIBUTES), 3))
    numbers = Numbers(draw(st.integers(0, 2**16)))
    attributes = [make(numbers) for name, make in TENDON_ATTRIBUTES.items() if name in features]
    round_ones = [i for i, part in enumerate(bodies) if part["shape"] in ("sphere", "cylinder")]
    around = draw(st.sampled_from(round_ones)) if round_ones and draw(st.booleans()) else None
    path = [f'<site site="s{site}"/>' for site in sites]
    if around is not None:
      side = numbers.one_of("", f'sidesite="o{around}"')
      path.insert(1, f'<geom geom="g{around}" {side}/>')
    else:
      attributes.append(numbers.one_of("", f'armature="{numbers.uniform(0.01, 0.5)}"'))
    if draw(st.booleans()):
      path += ['<pulley divisor="2"/>', path[-1], path[0]]
    lines.append(f'<spatial name="p{index}" {" ".join(attributes)}>{"".join(path)}</spatial>')
  return "<tendon>\n" + "\n".join(lines) + "\n</tendon>"


@st.composite
def equalities(draw: st.DrawFn, bodies: int, joints: list[str]) -> str:
  """Draw an equality element: up to two of connect, weld and joint."""
  lines = []
  for _ in range(draw(st.integers(0, 2))):
    kind = draw(st.sampled_from(("connect", "weld", "joint") if joints else ("connect", "weld")))
    numbers = Numbers(draw(st.integers(0, 2**16)))
    pair = draw(
      st.lists(st.sampled_from(joints if kind == "joint" else range(bodies)), max_size=2, unique=True)
    )
    if not pair:
      continue
    part = "joint" if kind == "joint" else "body"
    names = " ".join(
      f'{part}{i}="{name if kind == "joint" else f"b{name}"}"' for i, name in enumerate(pair, 1)
    )
    own = {
      "connect": f'anchor="{numbers.normal(0.1)}"',
      "weld": f'torquescale="{numbers.uniform(0.2, 2)}"',
      "joint": f'polycoef="{numbers.normal(0.3, 5)}"',
    }[kind]
    lines.append(f'<{kind} {names} {own} solref="{solref(numbers)}" solimp="{solimp(numbers)}"/>')
  return "<equality>\n" + "\n".join(lines) + "\n</equality>"
