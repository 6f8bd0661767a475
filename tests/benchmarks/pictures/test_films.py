import numpy as np
import pytest

from benchmarks.pictures import films


def test_every_film_of_the_pages_can_be_made_again():
  names = {path.stem for path in films.FOLDER.iterdir()} - {"page"}
  assert names <= {*films.FILMS, *(f"{name}_cycle" for name in films.STRIPS)}


def test_a_cycle_is_the_first_repetition():
  phase = 2 * np.pi * np.arange(80) / 20.5
  angles = np.stack([np.sin(phase), np.cos(phase)], 1)
  assert films.cycle_of(angles) in (20, 21)  # 41 steps repeat better
  assert films.cycle_of(phase[:, None]) == 40  # never


def test_names_choose_films_strips_and_policies(tmp_path, monkeypatch, capsys):
  made = []

  def make(kind):
    def write(name, source):
      made.append((kind, name, source))
      path = tmp_path / f"{name}_{kind}.webp"
      path.write_bytes(b"four")
      return path

    return write

  monkeypatch.setattr(films, "film", make("film"))
  monkeypatch.setattr(films, "strip", make("strip"))
  films.run(["humanoid=runs/a", "quadruped"])
  assert made == [("film", "humanoid", "runs/a"), ("strip", "humanoid", "runs/a"), ("strip", "quadruped", "")]
  assert "films.humanoid_film.bytes: 4" in capsys.readouterr().out
  made.clear()
  films.run([])
  assert {name for _, name, _ in made} == {"quadcopter", "quadruped"}
  with pytest.raises(SystemExit, match="no 'ant' to measure"):
    films.run(["ant"])


def test_a_strip_shows_a_walking_robot(tmp_path, drawing):
  path = films.strip("quadruped", "", tmp_path)
  with films.Image.open(path) as image:
    picture = np.asarray(image.convert("RGB")).astype(int)
  assert picture.shape == (films.HEIGHT, films.PICTURES * films.WIDTH, 3)
  tiles = np.split(picture, films.PICTURES, 1)
  assert all(np.abs(tile - tiles[0]).max() > 50 for tile in tiles[1:])
