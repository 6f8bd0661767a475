"""Places of mistakes: file, line and function, in the files of a task alone."""

import pytest

from tasks.core.errors import TaskError, reports_task_errors, task_errors


def divide():
  return 1 / 0


class Base:
  @reports_task_errors
  def run(self, work):
    """Do the work."""
    return work()


def test_the_last_place_in_the_files_is_named_in_one_line():
  with pytest.raises(TaskError, match=r"core/test_errors\.py, line \d+, in divide: ZeroDivisionE") as error:
    Base().run(divide)
  assert isinstance(error.value.__cause__, ZeroDivisionError)
  assert Base.run.__doc__ == "Do the work."
  assert Base().run(lambda: 3) == 3


def test_what_goes_wrong_elsewhere_is_not_blamed_on_them():
  with pytest.raises(ZeroDivisionError), task_errors(lambda: ["elsewhere.py"]):
    divide()


@pytest.mark.parametrize(("error", "text"), [
  (ValueError("two\n  lines"), ": two lines"),
  (KeyError("no joint 'x'"), ": KeyError: no joint 'x'"),
  (TypeError("wrong"), ": TypeError: wrong"),
])  # fmt: skip
def test_errors_speak_for_themselves_or_with_their_kind(error, text):
  def work():
    raise error

  with pytest.raises(TaskError) as told:
    Base().run(work)
  assert str(told.value).endswith(f", in work{text}")


def test_a_name_that_is_nearly_there_is_told():
  class Task(Base):
    best = 1

  with pytest.raises(TaskError, match=r"has no attribute 'bset'; the nearest is 'best'$"):
    Base().run(lambda: Task().bset)
