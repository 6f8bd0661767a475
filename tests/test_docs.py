"""The pages say what the code says: examples, keys, figures, links; and they make a site."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import tasks
import train
from benchmarks import table
from gpurobot.device.distributed import World
from gpurobot.run.metrics import METRICS
from gpurobot.settings.config import TrainConfig, leaves
from gpurobot.shell import cli

ROOT = Path(__file__).parents[1]
PAGES = {
  path.relative_to(ROOT): path.read_text()
  for path in (*sorted(ROOT.glob("*.md")), *sorted((ROOT / "docs").rglob("*.md")))
}
README = PAGES[Path("README.md")]

# robot.urdf of docs/new_robot.md
INERTIAL = """<inertial><mass value="1"/>
  <inertia ixx="0.1" iyy="0.1" izz="0.1" ixy="0" ixz="0" iyz="0"/></inertial>"""
LEG = f"""<robot name="leg"><link name="thigh">{INERTIAL}</link><link name="shank">{INERTIAL}</link>
  <joint name="knee" type="revolute"><parent link="thigh"/><child link="shank"/><axis xyz="0 1 0"/>
    <limit lower="-2.5" upper="0" effort="20" velocity="20"/></joint></robot>"""


def python_blocks(text: str) -> list[str]:
  return re.findall(r"```python\n(.*?)```", text, re.DOTALL)


def test_readme_shows_the_example_of_adding_a_task() -> None:
  assert python_blocks(README) == python_blocks(PAGES[Path("docs/new_task.md")])


def test_settings_page_lists_every_key_with_its_meaning() -> None:
  """Keys of several algorithms with one name and one meaning share a row."""
  rows: dict[tuple[str, str], list[str]] = {}
  for key, leaf in leaves(TrainConfig()).items():
    unit = f" [{leaf.metadata['unit']}]" if leaf.metadata["unit"] else ""
    meaning = f"{leaf.metadata['help']}{unit}".replace("|x|", "\\|x\\|").replace("] [", "] \\[")
    rows.setdefault((key.rpartition(".")[2], meaning), []).append(f"`{key}`")
  page = PAGES[Path("docs/settings.md")].splitlines()
  lines = [f"| {', '.join(keys)} | {meaning} |" for (_, meaning), keys in rows.items()]
  assert [line for line in page if line.startswith("| `")] == lines


def test_metrics_page_lists_every_metric() -> None:
  rows = [f"| `{column}` | {tag} | {description} |" for column, tag, description in METRICS]
  page, _ = PAGES[Path("docs/metrics.md")].split("## Steadiness")
  assert [line for line in page.splitlines() if line.startswith("| `")] == rows


@pytest.mark.parametrize(
  "page", ["docs/physics.md", "docs/cameras.md", "docs/engine.md", "docs/new_robot.md"]
)
def test_programs_run_and_print_what_the_page_says(page: str, tmp_path: Path, monkeypatch, capsys) -> None:
  (tmp_path / "assets").symlink_to(ROOT / "assets")
  (tmp_path / "robot.urdf").write_text(LEG)
  monkeypatch.chdir(tmp_path)
  monkeypatch.setenv("PYTHONBREAKPOINT", "0")
  names: dict[str, object] = {}
  for program in python_blocks(PAGES[Path(page)]):
    exec(program, names)
  printed = capsys.readouterr().out
  assert all(block in printed for block in re.findall(r"```text\n(.*?)```", PAGES[Path(page)], re.DOTALL))


@pytest.mark.usefixtures("keep_signal_handlers")
def test_examples_of_shared_parts_train_and_print_what_the_page_says(
  tmp_path: Path, monkeypatch, capsys
) -> None:
  monkeypatch.chdir(tmp_path)
  page = PAGES[Path("docs/shared_parts.md")]
  *files, program = python_blocks(page)
  assert re.findall(r"`(\w+\.py)`", page) == ["dog.py", "touch.py"]
  for name, task in zip(("dog.py", "touch.py"), files, strict=True):
    Path(name).write_text(task)
    assert train.main([f"task={name}", "max_iterations=1", "num_envs=16", "threads=1"]) == 0
  capsys.readouterr()
  exec(program, {})
  assert capsys.readouterr().out == re.findall(r"```text\n(.*?)```", page, re.DOTALL)[0]


@pytest.mark.usefixtures("keep_signal_handlers")
def test_task_of_the_migration_page_trains(tmp_path: Path, monkeypatch) -> None:
  monkeypatch.chdir(tmp_path)
  (task,) = python_blocks(PAGES[Path("docs/migrate.md")])
  Path("pole.py").write_text(task)
  assert train.main(["task=pole.py", "max_iterations=1", "num_envs=16", "threads=1"]) == 0


def test_recipes_are_settings_of_their_tasks() -> None:
  rows = re.findall(r"^\| [^|]+ \| `(\w+)` \| `([^`]+)` \|$", PAGES[Path("docs/recipes.md")], re.MULTILINE)
  assert len(rows) > 20
  for task, words in rows:
    cli.parse([f"task={task}", *words.split()], tasks.load, World())


def test_debugger_answers_what_the_page_says(tmp_path: Path) -> None:
  page = PAGES[Path("docs/engine.md")]
  (session,) = re.findall(r"```console\n\$ python look\.py\n(.*?)```", page, re.DOTALL)
  script, prompt = tmp_path.resolve() / "look.py", re.compile(r"^\(Pdb\) (.*)\n", re.MULTILINE)
  script.write_text(next(block for block in python_blocks(page) if "breakpoint()" in block))
  done = subprocess.run(
    [sys.executable, str(script)],
    cwd=ROOT,
    env=os.environ | {"PYTHONPATH": str(ROOT), "PYTHONBREAKPOINT": ""},
    input="\n".join([*prompt.findall(session), ""]),
    check=True,
    capture_output=True,
    text=True,
  )
  assert done.stdout.replace(f"{script.parent}{os.sep}", "") == prompt.sub("(Pdb) ", session)


def test_tables_show_the_figures_that_were_measured() -> None:
  for path, page in table.pages().items():
    assert path.read_text() == page, f"python -m benchmarks.table rewrites {path.name}"


def test_benchmarks_page_has_every_result_and_the_readme_five_that_meet_their_goals() -> None:
  measured = table.results(table.read())
  assert measured in PAGES[Path("docs/benchmarks.md")]
  shown = re.findall(r"^\| [^|]+ \| ([^|]+ \| [^|]+) \|$", README.partition("## Results")[2], re.MULTILINE)
  assert len(shown) == 5
  assert {*shown} <= {" | ".join(line.split(" | ")[1:3]) for line in measured.splitlines()}


def test_lines_have_at_most_110_columns() -> None:
  """Tables, pictures and what programs print may be wider."""
  sources = {path.relative_to(ROOT): path.read_text() for path in ROOT.glob("assets/*/SOURCE.md")}
  for page, text in (PAGES | sources).items():
    prose = re.sub(r"```text\n.*?```", "", text, flags=re.DOTALL)
    wide = [line for line in prose.splitlines() if len(line) > 110 and not line.startswith(("|", "!["))]
    assert wide == [], page


def test_tasks_pages_have_every_task() -> None:
  headings = re.findall(r"^### `(.*)`$", PAGES[Path("docs/tasks.md")], re.MULTILINE)
  rows = re.findall(r"^\| (`(?:gym|dm)/.*?) \|", PAGES[Path("docs/suites.md")], re.MULTILINE)
  assert sorted(headings + re.findall(r"`(.*?)`", " ".join(rows))) == tasks.available()


def test_api_pages_have_every_module() -> None:
  """A page shows the modules of a folder with its package."""
  api = [text for path, text in PAGES.items() if path.parent.name == "api"]
  shown = re.findall(r"^::: (\S+)$", "\n".join(api), re.MULTILINE)
  assert len({*shown}) == len(shown)
  modules = {
    ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")
    for name in ("gpurobot", "physics", "tasks")
    for path in ROOT.glob(f"{name}/**/*.py")
  }
  of_their_own = {"gpurobot", "physics", "tasks", *(f"tasks.{name}" for name in tasks.available())}
  rest = {
    name
    for name in modules - of_their_own
    if not name.startswith(("tasks.gym", "tasks.dm")) and "__main__" not in name
  }
  assert not {
    name for name in rest if not {name, name.rpartition(".")[0], ".".join(name.split(".")[:2])} & {*shown}
  }
  assert {*shown} <= modules


def test_site_builds_without_a_warning(tmp_path) -> None:
  command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(tmp_path)]
  done = subprocess.run(command, cwd=ROOT, check=False, capture_output=True, text=True)
  assert done.returncode == 0, done.stderr
  assert "evaluate" in (tmp_path / "api" / "programs.html").read_text()
  assert '<pre class="mermaid">' in (tmp_path / "architecture.html").read_text()
  llms = (tmp_path / "llms.txt").read_text()
  links = re.findall(r"^- \[.+?\]\((.+?)\): .+", llms, re.MULTILINE)
  assert len(llms.splitlines()) <= 30
  assert len(links) > 15
  assert all((tmp_path / link).exists() for link in links)


def test_links_lead_to_files() -> None:
  for page, text in PAGES.items():
    for link in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", text):
      assert (ROOT / page.parent / link).exists(), f"{page}: {link}"
