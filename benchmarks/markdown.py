"""Tables in Markdown, of figures by name."""

from collections.abc import Mapping

Figures = Mapping[str, float]


def grid(figures: Figures, prefix: str, columns: dict[str, str], rows: dict[str, str]) -> str:
  """Return the table of the figures `<prefix>.<row>.<column>`, with headings of columns and rows.

  A row with missing figures is left out.
  """
  table = [list(columns.values())]
  for row, head in rows.items():
    names = [f"{prefix}.{row}.{column}" for column in columns if column]
    if figures.keys() >= {*names}:
      table.append([head, *(text(figures[name]) for name in names)])
  return markdown(table)


def markdown(table: list[list[str]]) -> str:
  """Return a table with its first row as the heading."""
  header, *rows = (f"| {' | '.join(row)} |" for row in table)
  return "\n".join([header, "|" + "---|" * len(table[0]), *rows])


def text(value: float) -> str:
  """Return a figure with three significant digits, or as a whole number from 100 on."""
  return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"
