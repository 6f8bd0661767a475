"""Robot files as trees of XML elements, to change before they are loaded."""

from pathlib import Path
from xml.etree import ElementTree as ET


def read(file: Path) -> ET.Element:
  """Return the root of a robot file, in which the paths of other files are absolute."""
  root = ET.parse(file).getroot()
  for element in root.iter():
    kinds = {"include": ("file",), "compiler": ("meshdir", "texturedir")}.get(element.tag, ())
    for kind in kinds:
      if kind in element.attrib:
        element.set(kind, str(file.parent / element.attrib[kind]))
  return root


def world(root: ET.Element) -> ET.Element:
  """Return the world, in which the bodies are."""
  found = root.find("worldbody")
  assert found is not None
  return found


def find(root: ET.Element, name: str) -> ET.Element:
  """Return the element of the world, at any depth, that has this name."""
  return next(element for element in world(root).iter() if element.get("name") == name)


def remove(root: ET.Element, *names: str) -> None:
  """Remove the bodies, geoms, sites and cameras of these names that stand in the world itself."""
  for element in [child for child in world(root) if child.get("name") in names]:
    world(root).remove(element)


def make_movable(root: ET.Element, name: str) -> None:
  """Make a geom, site or body that is fixed in the world movable: as a mocap body of its name."""
  element = next(child for child in world(root) if child.get("name") == name)
  if element.tag == "body":
    element.set("mocap", "true")
    return
  world(root).remove(element)
  place = element.attrib.pop("pos", "0 0 0")
  ET.SubElement(world(root), "body", name=name, mocap="true", pos=place).append(element)


def text(root: ET.Element) -> str:
  """Return the text of a robot file."""
  return ET.tostring(root, encoding="unicode")
