"""Picture of docs/cameras.md: python -m benchmarks.pictures.cameras.

It shows the image of each scene's camera in colour, with its depth below, dark where it is near.
"""

from pathlib import Path

import torch
from PIL import Image

import physics
from benchmarks.cameras.rendering import KINDS, SCENES, load_scene
from benchmarks.report import start_whole

PATH = Path(__file__).parents[2] / "docs" / "results" / "cameras.png"


def run(path: Path = PATH) -> None:
  """Write the picture."""
  columns = []
  for name in SCENES:
    model, qpos = load_scene(name)
    simulation = physics.Simulation(model, 1, outputs=())
    simulation.qpos.copy_(qpos[:1])
    images = physics.Camera(simulation, "eye", 256, 192, KINDS, (0.05, 60.0)).render()
    depth = 255 * (images["depth"][0] / 6.0).clamp(max=1.0)
    columns.append(torch.cat([images["rgb"][0], depth.to(torch.uint8).expand(-1, -1, 3)]))
  Image.fromarray(torch.cat(columns, dim=1).numpy()).save(path)


if __name__ == "__main__":
  start_whole(run)
