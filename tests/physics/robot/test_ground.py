"""Heights of a file: their order, units and gaps, and files that are no ground."""

import re

import numpy as np
import pytest
from PIL import Image

from physics.robot.ground import read_heights

# Rows of a map: y falls from row to row, x rises from column to column.
MAP = np.array([[0.0, 0.1, 0.2], [0.3, 0.2, 0.4]])


def written(folder, ending):
  """Return a file with the heights of MAP, of points half a metre apart."""
  file = folder / f"ground{ending}"
  if ending == ".npy":
    np.save(file, MAP)
  elif ending == ".npz":
    np.savez(file, heights=MAP, cell=0.5)
  elif ending == ".png":
    Image.fromarray(np.round(MAP / MAP.max() * 255).astype(np.uint8)).save(file)
  else:
    places = [(0.5 * x, 0.5 * y, MAP[1 - y, x]) for y in range(2) for x in range(3)]
    faces = [(1, 2, 5), (1, 5, 4), (2, 3, 6), (2, 6, 5)]
    lines = [f"v {x} {y} {z}" for x, y, z in places] + [f"f {a} {b} {c}" for a, b, c in faces]
    file.write_text("\n".join(lines))
  return str(file)


@pytest.mark.parametrize("ending", [".npy", ".npz", ".png", ".obj"])
def test_rows_run_from_the_least_y_to_the_greatest(ending, tmp_path):
  heights, cell = read_heights(written(tmp_path, ending), 0.5, MAP.max())
  assert cell == 0.5
  np.testing.assert_allclose(heights, MAP[::-1], atol=2e-3)


def test_a_hole_of_a_mesh_is_as_deep_as_its_lowest_point(tmp_path):
  file = tmp_path / "hole.obj"
  corners = [(0, 0, 0.2), (2, 0, 0.2), (0, 2, 0.2), (2, 0, 0.1), (2, 0.5, 0.1), (1.5, 0, 0.1)]
  file.write_text("".join(f"v {x} {y} {z}\n" for x, y, z in corners) + "f 1 2 3\nf 4 5 6\n")
  heights, _ = read_heights(str(file), 0.5, 0.0)
  assert heights[-1, -1] == pytest.approx(0.1)
  assert heights[0, 0] == pytest.approx(0.2)


@pytest.mark.parametrize(
  ("name", "content", "message"),
  [
    ("rough", None, "write flat, rough, stairs or a file .png, .npy"),
    ("none.npy", None, "there is no such file in"),
    ("row.npy", np.zeros(5), "float64 [5] is no table of heights"),
    ("hole.npy", np.array([[0.0, np.nan], [0.0, 0.0]]), "heights have to be finite"),
    ("words.npy", b"words", "words.npy: "),
    ("words.obj", b"f 1 2 3", "words.obj: "),
  ],
)
def test_what_is_no_ground_ends_in_one_line(name, content, message, tmp_path):
  file = tmp_path / name
  if isinstance(content, bytes):
    file.write_bytes(content)
  elif content is not None:
    np.save(file, content)
  with pytest.raises(ValueError, match=re.escape(message)) as error:
    read_heights(str(file), 0.5, 1.0)
  assert "\n" not in str(error.value)
