"""For the API pages: shape and unit, `[num_envs] [m]`, are no link in the sense of Markdown."""

import griffe


class Shapes(griffe.Extension):
  """Escapes the second of two neighbouring brackets in every docstring."""

  def on_object(self, *, obj: griffe.Object, **_: object) -> None:
    """Change the docstring of a module, class, function or attribute."""
    if obj.docstring:
      obj.docstring.value = obj.docstring.value.replace("] [", "] \\[")
