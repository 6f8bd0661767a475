"""Registration of the tasks with Gymnasium.

`ant` is gpurobot/Ant-v0, `quadruped_rough` gpurobot/QuadrupedRough-v0, `gym/Ant-v5` gpurobot/GymAnt-v5.
gpurobot/Task-v0 makes any other task: make("gpurobot/Task-v0", task="pendulum.py").
"""

import gymnasium

import tasks

NAMESPACE = "gpurobot"
MODULE = f"{NAMESPACE}.adapters.gym"


def register() -> None:
  """Register every task of tasks/, and Task-v0 for task files elsewhere."""
  _enter("Task-v0")
  for task in tasks.available():
    _enter(name(task), task=task)


def name(task: str) -> str:
  """Return the Gymnasium name of a task, without the namespace."""
  first, _, rest = task.rpartition("/")
  return f"{first.capitalize()}{rest}" if first else f"{''.join(map(str.capitalize, task.split('_')))}-v0"


def _enter(name: str, **kwargs: str) -> None:
  gymnasium.register(
    f"{NAMESPACE}/{name}",
    entry_point=f"{MODULE}:TaskEnv",
    vector_entry_point=f"{MODULE}:TaskVectorEnv",
    kwargs=kwargs,
  )
