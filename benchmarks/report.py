"""One figure, one line."""


def line(name: str, value: float) -> None:
  """Print `name: value`, whole from 1000 on, else with four significant digits."""
  print(f"{name}: {value:.0f}" if abs(value) >= 1000 else f"{name}: {value:.4g}", flush=True)


def read(text: str) -> dict[str, float]:
  """Return the figures of such lines, and nothing else, by name."""
  return {name: float(value) for name, value in (row.split(": ") for row in text.splitlines())}
