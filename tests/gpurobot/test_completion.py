import subprocess
import sys

import pytest

import tasks
from gpurobot import completion
from gpurobot.command import PROGRAMS


@pytest.mark.parametrize(
  ("line", "expected"),
  [
    ("gpurobot ", list(PROGRAMS)),
    ("gpurobot ev", ["evaluate"]),
    ("gpurobot train num_e", ["num_envs="]),
    ("gpurobot train task=cart", ["cartpole"]),
    ("gpurobot train task=", tasks.available()),
    ("gpurobot train algorithm=", ["ppo", "sac", "td3", "distill"]),
    ("gpurobot train overlap=t", ["true"]),
    ("gpurobot train ppo.reward_t", ["ppo.reward_transform="]),
    ("gpurobot sweep ppo.critic=s", ["scalar"]),
    ("gpurobot train sac.gam", []),
    ("gpurobot train algorithm=sac sac.gam", ["sac.gamma="]),
    ("gpurobot train algorithm=sac ppo.gam", []),
    ("gpurobot train algorithm=distill ppo.g", []),
    ("gpurobot train algorithm=distill ppo.hid", ["ppo.hidden="]),
    ("gpurobot train num_envs=", []),
    ("gpurobot train nothing=", []),
    ("gpurobot play runs/", []),  # the shell completes folders
  ],
)
def test_a_line_goes_on(line, expected):
  assert completion.candidates(line) == expected


def test_every_key_of_a_training_is_offered_but_those_of_other_algorithms():
  keys = completion.candidates("gpurobot train ")
  assert {"task=", "num_envs=", "ppo.lr="} <= {*keys}
  assert {key.partition(".")[0] for key in keys if "." in key} == {"log", "ppo"}


def test_it_is_quick():
  """It needs no torch: a shell asks at every press of a key."""
  program = "import sys; from gpurobot.completion import candidates; candidates('gpurobot train t')"
  check = f"{program}; assert not {{'torch', 'warp', 'gymnasium'}} & {{*sys.modules}}"
  subprocess.run([sys.executable, "-c", check], check=True)


@pytest.mark.parametrize(
  ("line", "expected"), [("gpurobot do", "doctor"), ("gpurobot train task=cartp", "cartpole")]
)
def test_a_shell_completes(line, expected):
  shell = f"""
    gpurobot() {{ {sys.executable} -m gpurobot "$@"; }}
    eval "$(gpurobot completion)"
    COMP_LINE='{line}' COMP_POINT={len(line)}
    _gpurobot
    echo "${{COMPREPLY[*]}}"
    complete -p gpurobot"""
  done = subprocess.run(["bash", "-c", shell], check=True, capture_output=True, text=True)
  assert done.stdout.splitlines() == [expected, "complete -o default -F _gpurobot gpurobot"]
