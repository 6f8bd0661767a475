"""The names of the tasks in Gymnasium's registry.

`ant` is gpurobot/Ant-v0, `quadruped_rough` gpurobot/QuadrupedRough-v0, `gym/Ant-v5` gpurobot/GymAnt-v5.
gpurobot/Task-v0 is any other task: make("gpurobot/Task-v0", task="pendulum.py").
"""

import gymnasium

import tasks

NAMESPACE = "gpurobot"
MODULE = f"{NAMESPACE}.adapters.gym"


def register() -> None:
  """Enter every task of tasks/, and Task-v0 for those elsewhere."""
  _enter("Task-v0")
  for task in tasks.available():
    _enter(name(task), task=task)


def name(task: str) -> str:
  """Return the name of a task, without the namespace."""
  first, _, rest = task.rpartition("/")
  return f"{first.capitalize()}{rest}" if first else f"{''.join(map(str.capitalize, task.split('_')))}-v0"


def _enter(name: str, **kwargs: str) -> None:
  gymnasium.register(
    f"{NAMESPACE}/{name}",
    entry_point=f"{MODULE}:TaskEnv",
    vector_entry_point=f"{MODULE}:TaskVectorEnv",
    kwargs=kwargs,
  )
