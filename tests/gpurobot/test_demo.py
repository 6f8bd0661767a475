import pytest

from gpurobot import demo, play
from gpurobot.deploy import demos


@pytest.mark.parametrize(
  ("words", "expected"),
  [
    ([], ["demo=ant"]),
    (["quadruped", "num_envs=4"], ["demo=quadruped", "num_envs=4"]),
    (["num_envs=4"], ["demo=ant", "num_envs=4"]),
  ],
)
def test_the_first_word_names_the_demo(monkeypatch, words, expected):
  given = []
  monkeypatch.setattr(play, "main", given.append)
  demo.main(words)
  assert given == [expected]


def test_help_names_the_demos(capsys):
  demo.main(["--help"])
  first, *rest = capsys.readouterr().out.splitlines()
  assert first.startswith(f"demos: {', '.join(demos.names())};")
  assert any(line.strip().startswith("port=8080") for line in rest)
