"""Energy and momentum of a body in free fall; other sensors of subtrees are compared in test_sensors.py."""

import numpy as np

from physics.load import load_model
from physics.parity import NumpySimulation


def test_energy_and_angular_momentum_of_a_tumbling_body_stay():
  model = load_model("""<mujoco><option timestep="0.001" integrator="RK4"/><worldbody>
    <body name="box"><freejoint/><geom type="box" size="0.1 0.2 0.3" contype="0"/></body>
  </worldbody><sensor>
    <subtreeangmom body="box"/><subtreelinvel body="world"/><e_kinetic/><e_potential/>
  </sensor></mujoco>""")
  simulation = NumpySimulation(model, 1, ("sensordata",))
  simulation.qvel[0] = simulation.qvel.new_tensor([0.5, 0.2, 1.0, 2.0, 3.0, 4.0])
  simulation.forward()
  start = simulation.sensordata.numpy()[0].copy()
  simulation.step(500)
  simulation.forward()
  end = simulation.sensordata.numpy()[0]
  assert start[6] > 1.0
  np.testing.assert_allclose(end[:3], start[:3], rtol=1e-6)
  np.testing.assert_allclose(end[3:6], start[3:6] - [0, 0, 0.5 * 9.81], atol=1e-9)
  np.testing.assert_allclose(end[6:].sum(), start[6:].sum(), rtol=1e-9)
