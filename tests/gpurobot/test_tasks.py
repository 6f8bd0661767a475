"""`python -m tasks`: the layout of a task by name, and a starting file that trains at once."""

import pytest

import tasks
import train
from gpurobot import tasks as program
from tests.tasks.conftest import SHAKEN


def test_without_words_it_names_all_tasks():
  assert program.run([]).splitlines() == tasks.available()


def test_it_tells_the_columns_of_every_block_and_what_blurs_them():
  lines = program.run([f"describe={SHAKEN}", "env.noise_position=0.5", "env.history_policy=2"]).splitlines()
  assert (
    "observation 'policy': 8 = 2 observations of 4, oldest first, delayed by up to 2 steps in training"
    in lines
  )
  assert "  0 ... 1  position  +- 0.5" in lines
  assert "  2 ... 3  velocity" in lines
  assert "  0  slider  -1 ... 1" in lines
  assert "  5        heavier" in lines


def test_it_tells_rewards_with_their_weights_and_what_happens():
  text = program.run([f"describe={SHAKEN}"])
  assert "  -0.01   cart_speed  weight of the penalty on the speed of the cart\n" in text
  assert "  varies   body_mass\n" in text
  assert text.endswith("  happens  kick          every 0.5 to 2 s")
  assert "in training" not in program.run(["describe=cartpole"])


@pytest.mark.usefixtures("keep_signal_handlers")
def test_a_new_task_trains_at_once(tmp_path):
  program.run([f"new={tmp_path / 'my_task'}", "from=cartpole"])
  file = tmp_path / "my_task.py"
  assert file.read_text().startswith('"""my_task, begun as a copy of cartpole.\n\nCartpole: ')
  words = [f"task={file}", "num_envs=8", "max_iterations=1", f"run_dir={tmp_path / 'run'}", "threads=1"]
  assert train.main(words) == 0


def test_no_file_is_overwritten_and_none_is_written_by_mistake(tmp_path):
  file = tmp_path / "mine.py"
  file.write_text("mine")
  with pytest.raises(ValueError, match=r"the file .*mine\.py already exists; choose another name"):
    program.run([f"new={file}", "from=ant"])
  assert [path.read_text() for path in tmp_path.iterdir()] == ["mine"]
