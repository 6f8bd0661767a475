import pytest

from gpurobot.viewer.command_panel import STEPS, positions


@pytest.mark.parametrize(
  ("low", "high", "expected"),
  [
    (-1.0, 1.0, (-1.0, 1.0, 0.01, 0.0)),
    (0.3, 1.005899, (0.3, 1.0, 0.01, 0.3)),
    (-3.14159, 3.14159, (-3.1, 3.1, 0.1, 0.0)),
    (-0.00123, -0.0002, (-0.00123, -0.0002, 1e-5, -0.0002)),
    (-700.0, 5400.0, (-700.0, 5400.0, 100.0, 0.0)),
  ],
)
def test_a_slider_shows_round_numbers_within_its_range(low, high, expected):
  assert positions(low, high) == expected
  first, last, step, _ = expected
  assert low <= first < last <= high
  assert (last - first) / step >= STEPS
