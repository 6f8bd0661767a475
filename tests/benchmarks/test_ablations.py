"""Ablations: which picture a setting is in, and what is kept and said of its seeds."""

from benchmarks import ablations, cases, table

ABLATION = cases.Ablation("sizes", ("task=ant",), panels=("ppo.schedule",))
SETTINGS = [
  f"num_envs={count} ppo.schedule={schedule}" for count in (1, 2) for schedule in ("constant", "adaptive")
]
ROWS = [
  {
    "setting": setting,
    "seed": str(seed),
    "steps": str(steps),
    "seconds": "1",
    "return": str(steps * (seed + 1)),
  }
  for setting in SETTINGS
  for seed in range(3)
  for steps in (10, 20)
]


def test_a_setting_is_told_by_its_picture_and_its_label():
  assert ABLATION.panel(SETTINGS[0]) == "ppo.schedule=constant"
  assert ABLATION.label(SETTINGS[0]) == "num_envs=1"
  assert cases.Ablation("all", ()).panel(SETTINGS[0]) == ""
  assert cases.Ablation("one", ("task=ant", "ppo.lr=1")).label("") == "ppo.lr=1"


def test_rows_are_grouped_by_setting_and_seed():
  groups = ablations.groups(ROWS)
  assert [*groups] == SETTINGS
  assert [[row["return"] for row in seed] for seed in groups[SETTINGS[1]]] == [
    ["10", "20"],
    ["20", "40"],
    ["30", "60"],
  ]


def test_a_setting_s_figures_are_means_without_outliers():
  """Of three seeds a quarter at each end is none: 20, 40, 60 at the end, and 15, 30, 45 on the way."""
  assert ablations.summary(ROWS)[SETTINGS[0]] == (40.0, 20.0, 60.0, 30.0)


def test_what_was_measured_is_kept_drawn_and_said(tmp_path, capsys, monkeypatch):
  monkeypatch.setattr(ablations, "FOLDER", tmp_path)
  assert ablations.read("sizes") == []
  ablations.write(ROWS, tmp_path / "sizes.csv")
  assert ablations.read("sizes") == ROWS
  ablations.draw(ABLATION, ROWS, tmp_path / "sizes.png")
  assert (tmp_path / "sizes.png").stat().st_size > 1000
  ablations.report(ABLATION, ROWS)
  said = capsys.readouterr().out.splitlines()
  assert "ablation.sizes.num_envs=1,ppo.schedule=constant.return: 40" in said
  assert "ablation.sizes.num_envs=1,ppo.schedule=constant.low: 20" in said
  assert "ablation.sizes.num_envs=1,ppo.schedule=constant.high: 60" in said
  assert "ablation.sizes.num_envs=1,ppo.schedule=constant.average: 30" in said


def test_a_table_has_a_column_for_each_picture(tmp_path, monkeypatch):
  monkeypatch.setattr(ablations, "FOLDER", tmp_path)
  ablations.write(ROWS, tmp_path / "sizes.csv")
  assert table.ablation(ABLATION, {}).splitlines() == [
    "|  | ppo.schedule=constant | ppo.schedule=adaptive |",
    "|---|---|---|",
    "| `num_envs=1` | 40 (30) | 40 (30) |",
    "| `num_envs=2` | 40 (30) | 40 (30) |",
  ]


def test_every_ablation_is_a_sweep_with_an_end():
  for ablation in cases.ABLATIONS:
    assert sum(word.startswith(("task=", "seed=", "max_steps=")) for word in ablation.words) == 3
