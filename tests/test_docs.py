"""The pages say what the code says: examples, keys, figures, links."""

import re
from pathlib import Path

import tasks
from benchmarks import table
from gpurobot.config import Config, leaves
from gpurobot.metrics import METRICS

ROOT = Path(__file__).parents[1]
PAGES = {
  path.relative_to(ROOT): path.read_text() for path in (ROOT / "README.md", *(ROOT / "docs").glob("*.md"))
}
README = PAGES[Path("README.md")]


def python_blocks(text: str) -> list[str]:
  return re.findall(r"```python\n(.*?)```", text, re.DOTALL)


def test_readme_shows_the_example_of_adding_a_task() -> None:
  assert python_blocks(README) == python_blocks(PAGES[Path("docs/new_task.md")])


def test_training_page_lists_every_key_with_its_meaning() -> None:
  rows = []
  for key, leaf in leaves(Config()).items():
    unit = f" [{leaf.metadata['unit']}]" if leaf.metadata["unit"] else ""
    rows.append(f"| `{key}` | {leaf.metadata['help']}{unit} |".replace("|x|", "\\|x\\|").replace("] [", "] \\["))
  page = PAGES[Path("docs/training.md")].splitlines()
  assert [line for line in page if line.startswith("| `")] == rows


def test_metrics_page_lists_every_metric() -> None:
  rows = [f"| `{column}` | {tag} | {description} |" for column, tag, description in METRICS]
  assert [line for line in PAGES[Path("docs/metrics.md")].splitlines() if line.startswith("| `")] == rows


def test_physics_page_shows_programs_that_run(monkeypatch) -> None:
  monkeypatch.chdir(ROOT)
  names: dict[str, object] = {}
  for program in python_blocks(PAGES[Path("docs/physics.md")]):
    exec(program, names)


def test_tables_show_the_figures_that_were_measured() -> None:
  for path, page in table.pages().items():
    assert path.read_text() == page, f"python -m benchmarks.table rewrites {path.name}"


def test_tasks_page_has_every_task() -> None:
  page = PAGES[Path("docs/tasks.md")]
  assert sorted(re.findall(r"^### `(.*)`$", page, re.MULTILINE)) == tasks.available()


def test_links_lead_to_files() -> None:
  for page, text in PAGES.items():
    for link in re.findall(r"\]\(([^)#:]+)\)", text):
      assert (ROOT / page.parent / link).exists(), f"{page}: {link}"
