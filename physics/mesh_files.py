"""Files beside a URDF: packages of ROS, and meshes in formats that MuJoCo does not read."""

import io
import os
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TypeAlias

Packages: TypeAlias = Mapping[str, str | os.PathLike[str]]

MANIFEST = "package.xml"  # which says a package's name
SCHEMES = ("package", "model")  # of names that begin with a package: ROS's and Gazebo's
MUJOCO_MESHES = (".stl", ".obj", ".msh")  # that MuJoCo reads itself


def no_file(path: Path) -> FileNotFoundError:
  """Return the error for a model file that does not exist."""
  place = f"'{path.name}' in {path.absolute().parent}"
  return FileNotFoundError(f"no model file {place}: write Path(__file__).parent / '<file>'")


def find_mesh(name: str, folder: Path, packages: Packages) -> Path:
  """Return the file of a mesh that a URDF in `folder` names; FileNotFoundError says what to give."""
  found = next((file for file in _places(name, folder, packages) if file.is_file()), None)
  if found is None:
    scheme, _, rest = name.rpartition("://")
    hint = _hint(rest.partition("/")[0]) if scheme in SCHEMES else "give its file"
    raise FileNotFoundError(f"no mesh '{name}': {hint}")
  return found


def find_package(package: str, folder: Path, packages: Packages) -> Path:
  """Return the folder of a package that a file in `folder` names; FileNotFoundError says what to give."""
  found = [place for place in _package_places(package, folder, packages) if place.is_dir()]
  if not found:
    raise FileNotFoundError(f"no package '{package}': {_hint(package)}")
  return next((place for place in found if (place / MANIFEST).is_file()), found[0])


def _hint(package: str) -> str:
  return f"give packages={{'{package}': '<folder>'}}, or ROS_PACKAGE_PATH=<the folder that has {package}>"


def read_mesh(file: Path) -> tuple[bytes, str]:
  """Return the content of a mesh file and its ending; formats that MuJoCo does not read become binary STL.

  Raises ValueError for a file that cannot be read.
  """
  content, ending = file.read_bytes(), file.suffix.lower()
  if ending in MUJOCO_MESHES and not (ending == ".stl" and _is_text(content)):
    return content, ending
  try:
    import trimesh  # noqa: PLC0415 (most files do without it)

    mesh, converted = trimesh.load(file, force="mesh"), io.BytesIO()
    mesh.export(converted, file_type="stl")
  except Exception as error:  # trimesh's readers raise exceptions of any kind
    if isinstance(error, ImportError) and error.name:
      raise ValueError(f"{file}: {error.name} reads such meshes: pip install 'gpurobot[urdf]'") from error
    raise ValueError(
      f"{file}: this mesh cannot be read ({type(error).__name__}): write it anew, as STL or OBJ"
    ) from error
  return converted.getvalue(), ".stl"


def _places(name: str, folder: Path, packages: Packages) -> Iterator[Path]:
  """Yield where a mesh file may be: in its package, or relative to the URDF's folder."""
  scheme, _, rest = name.rpartition("://")
  if scheme not in SCHEMES:
    yield folder / (rest if scheme == "file" else name)
    return
  package, _, rest = rest.partition("/")
  for place in _package_places(package, folder, packages):
    yield place / rest


def _package_places(package: str, folder: Path, packages: Packages) -> Iterator[Path]:
  """Yield where a package may be, by the names of folders, then by those in the manifests of packages."""
  if package in packages:
    yield Path(packages[package])
  above = (folder / "_").resolve().parents
  for each in above:
    yield each if each.name == package else each / package
  for root in filter(None, os.environ.get("ROS_PACKAGE_PATH", "").split(os.pathsep)):
    yield Path(root) / package
  for each in above[:-2]:  # neither the root nor a folder in it, which may be large
    for depth in ("", "*/", "*/*/"):
      for manifest in sorted(each.glob(depth + MANIFEST)):
        text = manifest.read_text(errors="replace") if manifest.is_file() else ""
        if re.search(rf"<name>\s*{re.escape(package)}\s*</name>", text):
          yield manifest.parent


def _is_text(stl: bytes) -> bool:
  """Return whether an STL file is text: a binary one has 50 bytes per triangle after the first 84."""
  triangles = int.from_bytes(stl[80:84], "little")
  return stl[:5] == b"solid" and len(stl) != 84 + 50 * triangles
