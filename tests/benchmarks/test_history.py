"""History of the benchmarks' ratios: entries by commit and machine, and what counts as fallen."""

import pytest

from benchmarks import history
from benchmarks.history import Entry


def entry(commit, machine="a", **ratios):
  return Entry(commit, "2026-01-01", machine, {"torch": "2"}, ratios)


def test_an_entry_is_of_a_commit_and_a_machine_and_has_the_ratios_alone(tmp_path):
  path = tmp_path / "history.jsonl"
  history.keep({"physics.ant.seconds": 1.0}, path)
  assert history.read(path) == []
  path.write_text("")
  history.keep({"physics.ant.ratio": 30.0, "physics.ant.seconds": 1.0}, path)
  history.keep({"scaling.ratio": 1.9}, path)
  (one,) = history.read(path)
  assert one.ratios == {"physics.ant.ratio": 30.0, "scaling.ratio": 1.9}
  assert one.commit
  assert "cores" in one.machine
  history.keep({"scaling.ratio": 1.8}, path)
  assert [found.ratios["scaling.ratio"] for found in history.read(path)] == [1.8]


@pytest.mark.parametrize(("now", "names"), [(9.6, []), (9.4, ["x"]), (20.0, [])])
def test_a_ratio_has_fallen_if_it_is_a_twentieth_below_the_median_before(now, names):
  earlier = [
    entry("1", x=10.0),
    entry("2", x=1.0),
    entry("3", x=11.0),
    entry("4", y=1.0),
    entry("5", "b", x=99.0),
  ]
  found = history.fallen([*earlier, entry("6", x=now, new=1.0)])
  assert list(found) == names
  assert all(before == 10.0 for before, _ in found.values())


def test_only_the_last_five_entries_count():
  earlier = [entry("0", x=100.0)] * 5 + [entry("1", x=10.0)] * 5
  assert not history.fallen([*earlier, entry("2", x=9.9)])


def test_the_program_names_what_has_fallen_and_fails(tmp_path, monkeypatch, capsys):
  monkeypatch.setattr(
    history, "read", lambda: [entry("1", **{"x.ratio": 10.0}), entry("2", **{"x.ratio": 8.0})]
  )
  monkeypatch.setattr(history, "draw", lambda _entries: None)
  assert history.run() == 1
  assert capsys.readouterr().out == "x.ratio: 8, 20% below 10\n"


def test_a_history_without_entries_is_told(monkeypatch, capsys):
  monkeypatch.setattr(history, "read", list)
  assert history.run() == 2
  assert capsys.readouterr().err == "error: no entries yet: `make bench` adds one\n"


def test_every_line_of_the_kept_history_is_an_entry_and_can_be_drawn(tmp_path):
  entries = history.read()
  assert len({(one.commit, one.machine) for one in entries}) == len(entries) > 0
  history.draw(entries, tmp_path / "history.png")
  assert (tmp_path / "history.png").stat().st_size > 10_000
