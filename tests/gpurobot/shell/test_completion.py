import shutil
import subprocess
import sys

import pytest

import tasks
from gpurobot.settings.config import leaves
from gpurobot.shell import completion, declared
from gpurobot.shell.programs import PROGRAMS
from tests.lacking import lacking


@pytest.mark.parametrize(
  ("line", "expected"),
  [
    ("gpurobot ", list(PROGRAMS)),
    ("gpurobot ev", ["evaluate"]),
    ("gpurobot train num_e", ["num_envs="]),
    ("gpurobot train task=cart", ["cartpole", "cartpole_pixels"]),
    ("gpurobot train task=", tasks.available()),
    ("gpurobot train algorithm=", ["ppo", "sac", "td3", "distill"]),
    ("gpurobot train overlap=t", ["true"]),
    ("gpurobot train ppo.reward_t", ["ppo.reward_transform="]),
    ("gpurobot sweep ppo.critic=s", ["scalar"]),
    ("gpurobot train algorithm=sac sac.gam", ["sac.gamma="]),
    ("gpurobot train algorithm=sac ppo.gam", []),
    ("gpurobot train algorithm=distill ppo.hid", ["ppo.hidden="]),
    ("gpurobot train nothing=", []),
    ("gpurobot play runs/", []),  # the shell completes folders
    ("gpurobot play vie", ["viewer="]),
    ("gpurobot evaluate engine=", ["own", "mujoco", "file", "gymnasium"]),
    ("gpurobot record demo=quadr", ["quadruped"]),
    ("gpurobot demo quadc", ["quadcopter"]),
    ("gpurobot demo cartpole env.start_p", ["env.start_position="]),
    ("gpurobot train task=walk env.fe", ["env.feet="]),
    ("gpurobot sweep task=dm/walker_run env.sp", ["env.speed="]),
    ("gpurobot train task=mine.py env.", []),
    ("gpurobot describe fe", ["feet="]),
    ("gpurobot tasks ", ["describe=", "new=", "from=", "debug="]),
    ("gpurobot tasks describe=cartpole env.start_p", ["env.start_position="]),
    ("gpurobot nothing a", []),
  ],
)
def test_a_line_goes_on(line, expected):
  assert completion.candidates(line) == expected


def test_every_key_of_a_training_is_offered_but_those_of_other_algorithms():
  keys = completion.candidates("gpurobot train ")
  assert {"task=", "num_envs=", "ppo.lr="} <= {*keys}
  assert {key.partition(".")[0] for key in keys if "." in key} == {"log", "ppo", "env"}


@pytest.mark.parametrize("name", PROGRAMS)
def test_every_program_that_has_settings_offers_them(name):
  keys = [key.removesuffix("=") for key in completion.candidates(f"gpurobot {name} ") if key[-1] == "="]
  if PROGRAMS[name].settings:
    settings = getattr(declared.read(PROGRAMS[name].module), PROGRAMS[name].settings)
    assert {*leaves(settings())} - {"env"} <= {*keys}
  assert keys or name in ("demo", "completion")


def test_the_task_of_a_run_is_in_its_folder(tmp_path):
  (tmp_path / "config.json").write_text('{"task": "cartpole"}')
  for words in (str(tmp_path), f"checkpoint={tmp_path}"):
    assert completion.candidates(f"gpurobot play {words} env.start_p") == ["env.start_position="]
  assert completion.candidates(f"gpurobot play {tmp_path / 'other'} env.") == []


LINE, EXPECTED = "gpurobot train task=quadc", "quadcopter"
COMMAND = f'gpurobot() {{ {sys.executable} -m gpurobot "$@"; }}'


def shell(name: str, text: str) -> list[str]:
  """Return the lines that a shell prints, which reads no configuration."""
  words = {"bash": ["--norc"], "zsh": ["-f"], "fish": ["--no-config"]}[name]
  path = shutil.which(name) or lacking(f"needs {name}: apt-get install {name}")
  done = subprocess.run([path, *words, "-c", text], check=True, capture_output=True, text=True)
  assert not done.stderr
  return done.stdout.splitlines()


COMPLETE = f"""
    {COMMAND}
    eval "$(gpurobot completion)"
    COMP_LINE='{LINE}' COMP_POINT={len(LINE)}
    _gpurobot
    echo "${{COMPREPLY[*]}}"
"""


def test_bash_completes():
  found = shell("bash", f"{COMPLETE}complete -p gpurobot")
  assert found == [EXPECTED, "complete -o default -F _gpurobot gpurobot"]


def test_zsh_completes():
  text = f"autoload -U +X compinit && compinit -D -u\n{COMPLETE}echo $_comps[gpurobot]"
  assert shell("zsh", text) == [EXPECTED, "_bash_complete -o default -F _gpurobot"]


@pytest.mark.parametrize(
  ("line", "expected"),
  [
    ("cd docs; gpurobot train task=quadc", ["task=quadcopter"]),
    ("gpurobot train config=pypro", ["config=pyproject.toml"]),
  ],
)
def test_fish_completes(line, expected):
  text = f"""
    function gpurobot; {sys.executable} -m gpurobot $argv; end
    gpurobot completion fish | source
    complete --do-complete '{line}'"""
  assert shell("fish", text) == expected
