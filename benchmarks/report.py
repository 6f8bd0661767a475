"""One figure, one line."""


def line(name: str, value: float) -> None:
  """Print `name: value` with four significant digits, or all digits of a whole number."""
  print(f"{name}: {value if isinstance(value, int) else f'{value:.4g}'}", flush=True)
