"""Files around the code that agree with it: pins of hooks, what GitHub runs, versions of Python."""

import re
import subprocess
import tomllib

import yaml
from packaging.specifiers import SpecifierSet

from tests.test_house import ROOT


def read(path: str) -> dict:
  return yaml.safe_load((ROOT / path).read_text())


def test_hooks_run_the_ruff_of_the_constraints() -> None:
  hooks = [hook for repo in read(".pre-commit-config.yaml")["repos"] for hook in repo["hooks"]]
  (pin,) = re.findall(r"^ruff==.*$", (ROOT / "constraints.txt").read_text(), re.MULTILINE)
  assert [hook["additional_dependencies"] for hook in hooks] == [[pin], [pin]]


def test_the_lock_has_hashes_of_what_the_constraints_name_but_for_torch() -> None:
  """torch's hash depends on where it is from; the file must not say where the others are from."""
  pins = re.findall(r"^\w.*==.*$", (ROOT / "constraints.txt").read_text(), re.MULTILINE)
  lock = (ROOT / "constraints.lock").read_text()
  locked = re.findall(r"^(\S+) \\\n    --hash=sha256:[0-9a-f]{64}\b", lock, re.MULTILINE)
  assert locked == [pin for pin in pins if not pin.startswith("torch==")]
  assert "://" not in lock


def test_github_checks_what_ci_does_from_the_oldest_python_on() -> None:
  job = read(".github/workflows/check.yml")["jobs"]["check"]
  project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
  assert job["steps"][-1]["run"] == ".ci/run"
  versions = job["strategy"]["matrix"]["python"]
  assert SpecifierSet(project["requires-python"]) == SpecifierSet(f">={versions[0]}")
  assert {f"Programming Language :: Python :: {version}" for version in versions} <= {*project["classifiers"]}


def test_make_test_names_tests_that_are_there_and_ci_runs_all(monkeypatch) -> None:
  def tests_run() -> list[list[str]]:
    command = ["make", "--dry-run", "--no-print-directory", "test"]
    lines = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout.splitlines()
    assert ".venv/bin/mypy" in lines
    return [line.split()[1:] for line in lines if " -m pytest " in line]

  monkeypatch.setenv("GPUROBOT_ALL_TESTS", "1")
  whole = ["-m", "pytest", "-n", "2", "--dist", "loadgroup"]
  assert tests_run() == [whole]
  monkeypatch.delenv("GPUROBOT_ALL_TESTS")
  brief = tests_run()
  assert [words[: len(whole)] for words in brief] == [whole] * 2
  assert "--quick" in brief[0]
  named = [word.split("::") for words in brief for word in words if word.startswith("tests/")]
  assert len(named) > 30
  for path, *names in named:
    assert (ROOT / path).exists()
    assert all(f"def {name.split('[')[0]}(" in (ROOT / path).read_text() for name in names)
