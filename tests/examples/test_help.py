import importlib
import runpy

import pytest

USAGES = {
  "record_style": "run file",
  "run_onnx": "policy robot",
  "run_onnx_pixels": "policy robot",
  "track_onnx": "policy motion robot",
}


@pytest.mark.parametrize(("name", "words"), USAGES.items())
def test_an_example_says_what_it_takes(name, words, capsys, monkeypatch):
  example = importlib.import_module(f"examples.{name}")
  monkeypatch.setattr("sys.argv", [f"{name}.py", "--help"])
  with pytest.raises(SystemExit, match="0"):
    runpy.run_path(str(example.__file__), run_name="__main__")
  assert f"usage: {name}.py [-h] {words}" in capsys.readouterr().out
