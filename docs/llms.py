"""llms.txt of the built site: what it is about, and the first pages of each section."""

import re
from pathlib import Path
from typing import Any

PAGES = 3  # of a section; the map of all pages is the first link


def first_sentence(page: Path) -> str:
  """Return what a page says of itself, without Markdown's links."""
  paragraph = page.read_text().split("\n\n")[1].replace("\n", " ")
  return re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", re.split(r"(?<=[.:])\s", paragraph)[0]).rstrip(":")


def text(config: Any) -> str:
  """Return the file for the settings of the site: title, summary, links by section."""
  lines = [f"# {config['site_name']}", "", f"> {config['site_description']}"]
  for (title, entries), *_ in (section.items() for section in config["nav"][:-1]):
    lines.append(f"## {title}")
    for name, page in [
      (name, page) for entry in entries if isinstance(entry, dict) for name, page in entry.items()
    ][:PAGES]:
      about = first_sentence(Path(config["docs_dir"]) / page)
      lines.append(f"- [{name}]({page.removesuffix('.md')}.html): {about}")
  return "\n".join(lines) + "\n"


def on_post_build(config: Any) -> None:
  """Write the file into the site."""
  (Path(config["site_dir"]) / "llms.txt").write_text(text(config))
