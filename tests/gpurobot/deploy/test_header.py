import re
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest
import torch

from gpurobot.deploy.deployed import Controls, Deployed
from gpurobot.deploy.exported import NAMES, Exported, write
from gpurobot.deploy.header import HEADER, UnsupportedError, write_header
from gpurobot.learn.env import Image
from gpurobot.settings.algorithms import Activation, Recurrence
from tasks.shared.action_path import ActionFilter
from tests.gpurobot.deploy.test_manifest import facts
from tests.gpurobot.policies import ACTIONS, DIMS, make

pytestmark = pytest.mark.skipif(shutil.which("g++") is None, reason="needs g++")
STEPS, ROOT = 10_000, Path(__file__).parents[3]
# Reads observations from stdin, writes actions and controls; every allocation during the steps is counted.
MAIN = """
#include <cstdio>
#include <cstdlib>
#include <new>
#include <vector>
#include "policy.hpp"

static int allocations = 0;
void* operator new(std::size_t size) { ++allocations; return std::malloc(size); }
void operator delete(void* place) noexcept { std::free(place); }
void operator delete(void* place, std::size_t) noexcept { std::free(place); }

struct Row { float numbers[policy::kObservation]; };

int main() {
  static policy::Policy robot;
  KIND input;
  std::vector<float> written;
  written.reserve(10000 * (policy::kActions + policy::kControls + policy::kEstimates));
  const int before = allocations;
  while (std::fread(&input, sizeof input, 1, stdin) == 1) {
    robot.step(input NUMBERS);
    for (auto value : robot.action) written.push_back(static_cast<float>(value));
    CONTROLS
    ESTIMATES
  }
  if (allocations != before) return 1;
  std::fwrite(written.data(), sizeof(float), written.size(), stdout);
}
"""


def run(folder, inputs, *, sensors=False, controls=False, estimates=False):
  """Compile the header with a program, and return its outputs [steps, n] for inputs [steps, width]."""
  kind, numbers = ("policy::Sensors", "") if sensors else ("Row", ".numbers")
  text = MAIN.replace("KIND", kind).replace(" NUMBERS", numbers)
  for word, output, written in (("CONTROLS", "ctrl", controls), ("ESTIMATES", "estimate", estimates)):
    more = f"for (float value : robot.{output}) written.push_back(value);" if written else ""
    text = text.replace(word, more)
  (folder / "main.cpp").write_text(text)
  flags = ["-std=c++17", "-O2", "-Wall", "-Wextra", "-Werror"]
  subprocess.run(["g++", *flags, "main.cpp", "-o", "main"], cwd=folder, check=True)
  done = subprocess.run([folder / "main"], input=inputs.tobytes(), capture_output=True, check=True)
  return np.frombuffer(done.stdout, np.float32).reshape(len(inputs), -1)


def drawn(width):
  return np.random.default_rng(0).normal(scale=2.0, size=(STEPS, width)).astype(np.float32)


def expected(step, inputs, state_width):
  """Return actions and controls [steps, n] of a policy that takes one observation after the other."""
  state, rows = torch.zeros(1, state_width), []
  for row in torch.from_numpy(inputs).unsqueeze(1):
    values = step(row, *([state] if state_width else []))
    *shown, state = values if state_width else (*values, state)
    rows.append(torch.cat([value.float().flatten() for value in shown]))
  return torch.stack(rows).numpy()


POLICIES = {
  "elu": {},
  "silu, normalised layers": {"activation": Activation.silu, "layer_norm": True},
  "relu, squashed": {"activation": Activation.relu, "squash": True},
  "tanh, state's deviations": {"activation": Activation.tanh, "state_std": True},
  "gru": {"recurrent": Recurrence.gru},
  "lstm, raw": {"recurrent": Recurrence.lstm, "normalize_obs": False},
  "choices": {"choices": (3, 2)},
  "estimates": {"estimate": ["speed"]},
  "estimates, raw, gru": {"estimate": ["speed"], "normalize_obs": False, "recurrent": Recurrence.gru},
}
FILTERS = {"elu": (2.0, 0.0), "gru": (2.0, 5.0), "relu, squashed": (0.0, 5.0)}  # cut-off [Hz], rate [rad/s]


@torch.no_grad()
@pytest.mark.parametrize("name", POLICIES)
def test_a_header_acts_as_the_policy_does(name, tmp_path):
  policy = make(**POLICIES[name])
  controls = None if "choices" in POLICIES[name] else Controls(torch.arange(2.0), torch.randn(ACTIONS, 2))
  scale = torch.linspace(0.2, 0.6, ACTIONS)
  wanted = ActionFilter.of(*FILTERS[name], 0.02, scale) if name in FILTERS else None
  deployed = Deployed(policy, controls, wanted)
  known = {"task": "toy", "control": {"controls": [{"actuator": "a"}, {"actuator": 'b"'}]}}
  write_header(deployed, known, tmp_path)
  inputs = drawn(DIMS["policy"])
  found = run(tmp_path, inputs, controls=controls is not None, estimates=bool(deployed.estimates))
  wanted = expected(deployed, inputs, deployed.state_width)
  size = np.abs(wanted).max(0).clip(min=1)  # estimates are in units of their own
  np.testing.assert_allclose(found / size, wanted / size, atol=1e-5, rtol=0)


@torch.no_grad()
def test_a_header_and_an_onnx_file_take_the_same_steps_from_sensors(tmp_path):
  """The header composes the observation, remembers the last action, and keeps the history."""
  policy = make({"policy": 3 * 47, "critic": 9}, 12, recurrent=Recurrence.gru)
  for parameter in policy.agent.network.parameters():
    parameter.mul_(0.3)  # larger weights amplify rounding from one last action to the next
  known = facts("quadruped", policy=policy, see_velocity=False, history_policy=3)
  deployed = Deployed(policy, None)
  write(deployed, known, tmp_path)
  write_header(deployed, known, tmp_path)
  widths = {each["name"]: len(each["columns"]) for each in known["sensors"] if each["name"] != "action"}
  inputs = drawn(sum(widths.values()))
  found = run(tmp_path, inputs, sensors=True)

  places = {each["name"]: each["columns"] for each in known["sensors"]}
  onnx, restart = Exported(tmp_path / NAMES[0], 1), torch.zeros(1, dtype=torch.bool)
  action, past, wanted = np.zeros(12, np.float32), None, []
  ends = np.cumsum([*widths.values()])[:-1]
  for row in inputs:
    measured = dict(zip(widths, np.split(row, ends), strict=True)) | {"action": action}
    now = [
      np.float32(each["scale"])
      * (measured[each["sensor"]][places[each["sensor"]].index(each["column"])] - np.float32(each["offset"]))
      for each in known["observation"]["columns"]
    ]
    past = [*(past or [now] * 3), now][-3:]
    action = onnx({"policy": torch.tensor(past).flatten().unsqueeze(0)}, restart)[0].numpy()
    wanted.append(action)
  np.testing.assert_allclose(found, wanted, atol=1e-5, rtol=0)


@torch.no_grad()
def test_the_program_of_the_page_names_the_actions(tmp_path):
  (text,) = re.findall(r"```cpp\n(.*?)```", (ROOT / "docs" / "deploy.md").read_text(), re.DOTALL)
  (tmp_path / "main.cpp").write_text(text)
  policy = make({"policy": 47, "critic": 9}, 12)
  write_header(Deployed(policy, None), facts("quadruped", policy=policy), tmp_path)
  subprocess.run(["g++", "-std=c++17", "main.cpp", "-o", "main"], cwd=tmp_path, check=True)
  lines = subprocess.run([tmp_path / "main"], capture_output=True, text=True, check=True).stdout.splitlines()
  assert [line.split()[0] for line in lines] == facts("quadruped", policy=policy)["actions"]["names"]
  assert all(-1 <= float(line.split()[1]) <= 1 for line in lines)


class Doubled(torch.nn.Linear):
  """A layer that computes something else than the class that it is made of."""

  def forward(self, x):
    """Return twice the linear layer."""
    return 2 * super().forward(x)


@pytest.mark.parametrize(
  ("layer", "named"),
  [
    (torch.nn.Softsign(), "the layer Softsign"),
    (Doubled(16, 16), "the layer Doubled"),
    (torch.nn.ELU(alpha=0.5), "the layer ELU"),
  ],
)
def test_what_a_header_cannot_express_is_named(layer, named, tmp_path):
  deployed = Deployed(make(), None)
  deployed.actor.layers.append(layer)
  with pytest.raises(UnsupportedError, match=named):
    write_header(deployed, {"task": "toy"}, tmp_path)
  assert not (tmp_path / HEADER).exists()


def test_images_and_weights_that_are_not_finite_are_named(tmp_path):
  deployed = Deployed(make(), None)
  deployed.head.output.bias[0] = torch.nan
  with pytest.raises(UnsupportedError, match="the number nan"):
    write_header(deployed, {"task": "toy"}, tmp_path)
  deployed.images = {"front": Image((8, 8, 3), "uint8", 0, 255, ("policy",))}
  with pytest.raises(UnsupportedError, match="the image 'front'"):
    write_header(deployed, {"task": "toy"}, tmp_path)


@torch.no_grad()
def test_layers_may_begin_with_an_activation(tmp_path):
  deployed = Deployed(make(), None)
  deployed.actor.layers.insert(0, torch.nn.Tanh())
  write_header(deployed, {"task": "toy"}, tmp_path)
  inputs = drawn(DIMS["policy"])
  np.testing.assert_allclose(run(tmp_path, inputs), expected(deployed, inputs, 0), atol=1e-5, rtol=0)
