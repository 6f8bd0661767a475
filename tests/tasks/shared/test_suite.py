"""Start ranges, states apart, and the cost of controls; tests/tasks/dm has the tasks."""

import numpy as np
import pytest

import physics
from tasks.shared import suite

ROBOT = """
<mujoco>
  <worldbody>
    <geom type="plane" size="1 1 1"/>
    <body pos="0 0 1">
      <freejoint/>
      <geom size="0.1"/>
      <body pos="0 0 0.5">
        <joint type="slide" axis="0 0 1" limited="true" range="0.1 0.2"/>
        <geom size="0.1"/>
        <body pos="0 0 0.5">
          <joint/>
          <geom size="0.1"/>
        </body>
      </body>
    </body>
  </worldbody>
</mujoco>"""


def test_joints_start_between_their_limits_hinges_anywhere_and_the_root_where_it_is():
  model = physics.load_model(ROBOT)
  low, high = suite.start_range(model)
  np.testing.assert_allclose(low, [0, 0, 1, 0, 0, 0, 0, 0.1, -np.pi])
  np.testing.assert_allclose(high, [0, 0, 1, 1, 1, 1, 1, 0.2, np.pi])
  drawn = suite.draw_positions(model, np.random.default_rng(0), 50)
  np.testing.assert_allclose(np.linalg.norm(drawn[:, 3:7], axis=1), 1.0)
  assert ((drawn >= low - 1e-12) & (drawn <= high + 1e-12)).all()


def test_states_in_contact_are_left_out():
  model = physics.load_model(ROBOT)
  qpos = np.tile(model.qpos0, (3, 1))
  qpos[1, 2] = 0.05
  kept = suite.apart(model, {"qpos": qpos, "qvel": np.arange(3.0)[:, None] * np.ones(model.nv)})
  assert kept["qvel"][:, 0].tolist() == [0.0, 2.0]


def test_full_controls_leave_four_fifths():
  controls = [[0.0, 0.0], [1.0, -1.0], [0.0, 1.0]]
  assert suite.small(suite.torch.tensor(controls)).tolist() == pytest.approx([1.0, 0.8, 0.9])
