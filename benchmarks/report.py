"""Output format of benchmarks: `name: value` lines."""

printed: dict[str, float] = {}  # values of the lines of this process by name


def line(name: str, value: float) -> None:
  """Print `name: value` with four significant digits, or as a whole number from 1000 on."""
  printed[name] = value
  print(f"{name}: {value:.0f}" if abs(value) >= 1000 else f"{name}: {value:.4g}", flush=True)


def read(text: str) -> dict[str, float]:
  """Return the values of `name: value` lines by name."""
  return {name: float(value) for name, value in (row.split(": ") for row in text.splitlines())}
