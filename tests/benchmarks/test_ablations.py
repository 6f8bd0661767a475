"""Ablations: which picture a setting is in, and what is kept and said of its seeds."""

from benchmarks import ablations, cases

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


def test_rows_are_grouped_by_setting_and_seed():
  groups = ablations.groups(ROWS)
  assert [*groups] == SETTINGS
  assert [[row["return"] for row in seed] for seed in groups[SETTINGS[1]]] == [
    ["10", "20"],
    ["20", "40"],
    ["30", "60"],
  ]


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
