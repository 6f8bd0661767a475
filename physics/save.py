"""Writer of a model: MJCF with the files that it refers to, in a folder of its own."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from physics.load import Source, read_spec

FILES = "robot_files"  # folder of the meshes and images beside the model


def save_model(source: Source, path: Path) -> list[Path]:
  """Write `source` as the MJCF file `path`, and its meshes and images into FILES; return what is written.

  Raises ValueError for a compiled model, which MuJoCo cannot write, and for one that differs once it is read.
  """
  spec = read_spec(source)
  written = [path]
  for index, (element, field, place, content) in enumerate(_files(spec)):
    file = path.parent / FILES / f"{index}_{place.name}"
    file.parent.mkdir(exist_ok=True)
    file.write_bytes(content)
    setattr(element, field, f"{FILES}/{file.name}")
    written.append(file)
  spec.meshdir, spec.texturedir, spec.modelfiledir = "", "", str(path.parent)
  spec.compile()
  path.write_text(spec.to_xml())
  return written


def _files(spec: Any) -> Iterator[tuple[Any, str, Path, bytes]]:
  """Yield each element that refers to a file, the field with its name, the file and its content."""
  kinds = ((spec.meshes, spec.meshdir), (spec.hfields, spec.meshdir), (spec.textures, spec.texturedir))
  for elements, folder in (*kinds, (spec.skins, spec.meshdir)):
    for element in elements:
      if element.file:
        name = element.file
        place = Path(spec.modelfiledir) / folder / name
        inside = next((key for key in (name, f"{folder}/{name}", Path(name).name) if key in spec.assets), "")
        yield element, "file", place, spec.assets[inside] if inside else place.read_bytes()
