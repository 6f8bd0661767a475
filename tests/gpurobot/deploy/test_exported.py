import pytest
import torch

from gpurobot.deploy.deployed import Controls, Deployed
from gpurobot.deploy.exported import NAMES, Exported, write
from gpurobot.settings.algorithms import Recurrence
from tests.gpurobot.policies import ACTIONS, DIMS, NUM_ENVS, make

FACTS = {"about": "a robot of [3] parts", "numbers": [1.5, 2.0]}


@pytest.fixture(scope="module")
def written(tmp_path_factory):
  """Return a folder with the files of a policy with a memory, and that policy."""
  folder, trained = tmp_path_factory.mktemp("files"), make(recurrent=Recurrence.lstm)
  deployed = Deployed(trained, Controls(torch.zeros(ACTIONS), torch.eye(ACTIONS)))
  inputs = {name: {"width": zeros.shape[1]} for name, zeros in deployed.inputs.items()}
  write(deployed, FACTS | {"inputs": inputs, "outputs": deployed.outputs}, folder)
  return folder, trained


@pytest.mark.parametrize("name", NAMES[:2])
def test_a_file_acts_as_the_policy_does(written, name):
  folder, trained = written
  exported = Exported(folder / name, NUM_ENVS)
  assert exported.facts.items() >= FACTS.items()
  restart = torch.ones(NUM_ENVS, dtype=torch.bool)
  for step in range(4):
    obs = {group: 3 * torch.randn(NUM_ENVS, width) for group, width in DIMS.items()}
    wanted = trained(obs, restart).clamp(-1, 1)
    torch.testing.assert_close(exported(obs, restart), wanted, rtol=0, atol=1e-5)
    restart = torch.arange(NUM_ENVS) == step


@pytest.mark.parametrize("name", NAMES[:2])
def test_a_file_is_for_any_number_of_robots(written, name):
  one = {"policy": torch.zeros(1, DIMS["policy"])}
  action = Exported(written[0] / name, 1)(one, torch.ones(1, dtype=torch.bool))
  assert action.shape == (1, ACTIONS)


def test_facts_are_for_people_too(written):
  text = (written[0] / NAMES[2]).read_text()
  assert '"numbers": [ 1.5, 2.0 ]' in text
  assert FACTS["about"] in text
