import pytest
import torch

from tasks.core.errors import TaskError
from tasks.core.sensor import Sensor, in_order

GYRO, ANGLES = Sensor(("x", "y", "z"), "rad/s", "of the trunk"), Sensor(("knee",), "rad", "of the joint")


def test_sensors_are_in_the_order_of_their_numbers():
  measured = {"angles": torch.zeros(2, 1), "gyro": torch.zeros(2, 3)}
  assert [*in_order({"gyro": GYRO, "angles": ANGLES}, measured)] == ["angles", "gyro"]


@pytest.mark.parametrize(
  ("measured", "message"),
  [
    ({}, "sensor 'gyro': measure() returns none, self.sensors has 3 columns"),
    ({"gyro": torch.zeros(2, 2)}, "measure() returns 2 columns, self.sensors has 3 columns"),
    ({"gyro": torch.zeros(2)}, "measure() returns no columns, self.sensors has 3 columns"),
    (
      {"gyro": torch.zeros(2, 3), "knee": torch.zeros(2, 1)},
      "'knee': measure() returns 1 columns, self.sensors has none",
    ),
  ],
)
def test_sensors_without_their_numbers_are_refused(measured, message):
  with pytest.raises(TaskError) as error:
    in_order({"gyro": GYRO}, measured)
  assert message in str(error.value)
