"""Randomised robots: drawn from the file's values, within bounds, in training alone."""

import math

import pytest
import torch

from gpurobot.learn.random import Random
from tasks import ant, base, cartpole
from tasks.shared import randomize

VARY = ("body_mass", "body_inertia", "geom_friction", "actuator_gainprm", "actuator_biasprm", "gravity")
SERVO = """
  <mujoco>
    <worldbody>
      <body><joint name="hinge" range="-60 60"/><geom name="bob" size="0.1" pos="0 0 -1" mass="2"/></body>
    </worldbody>
    <actuator><position name="servo" joint="hinge" kp="10" kv="2" inheritrange="1"/></actuator>
  </mujoco>"""


class Varied(ant.Task):
  vary = VARY


def made(draws, num_envs=64, kind=Varied, training=True, seed=0):
  module = {Varied: ant}.get(kind, cartpole)
  task = kind(module.Config(), num_envs, random=Random(seed, num_envs), training=training)
  return task, randomize.Randomization(task, draws)


def test_friction_is_put_in_place_of_the_files_for_all_geoms_of_an_environment():
  task, randomization = made({"floor": randomize.friction(0.5, 1.25)})
  drawn = randomization.draw()
  assert {*drawn} == {"geom_friction"}
  sliding, rest = drawn["geom_friction"][..., 0], drawn["geom_friction"][..., 1:]
  assert sliding.equal(sliding[:, :1].expand_as(sliding))
  assert 0.5 <= sliding.min() < 0.6
  assert 1.15 < sliding.max() < 1.25
  assert rest.equal(task.constant(task.model.geom_friction)[:, 1:].expand_as(rest))


def test_mass_takes_its_inertia_along_and_leaves_other_bodies():
  task, _ = made({})
  torso = task.body_of("torso")
  drawn = randomize.Randomization(task, {"torso": randomize.mass(0.5, 2.0, torso)}).draw()
  factor = drawn["body_mass"] / task.constant(task.model.body_mass).clamp(min=1e-9)
  assert factor[:, torso].min() < 0.7
  assert factor[:, torso].max() > 1.6
  others = [i for i in range(1, task.model.nbody) if i != task.model.body_id("torso")]
  assert factor[:, others].eq(1).all()
  inertia = drawn["body_inertia"][:, torso] / task.constant(task.model.body_inertia)[torso]
  torch.testing.assert_close(inertia, factor[:, torso, None].expand_as(inertia))


class Servo(base.Task):
  robot = SERVO
  vary = ("actuator_gainprm", "actuator_biasprm")

  def reward(self):
    return {}

  def observe(self):
    return {"policy": {"angle": self.sim.qpos}}


def test_gains_of_a_position_actuator_keep_its_setpoint_where_it_was():
  task = Servo(base.Config(), 16, random=Random(0, 16))
  draws = {"kp": randomize.stiffness(0.5, 2.0), "kv": randomize.damping(0.8, 1.2)}
  drawn = randomize.Randomization(task, draws).draw()
  kp, bias = drawn["actuator_gainprm"][:, 0, 0], drawn["actuator_biasprm"][:, 0]
  assert kp.equal(-bias[:, 1])
  assert 5 <= kp.min() < kp.max() < 20
  assert -2.4 <= bias[:, 2].min() < bias[:, 2].max() <= -1.6
  assert not (kp / 10).allclose(bias[:, 2] / -2)


def test_draws_start_from_the_files_values_however_often():
  task, randomization = made({"torso": randomize.mass(1.1, 1.2)}, num_envs=8)
  for _ in range(20):
    task.random.advance()
    for name, value in randomization.draw().items():
      getattr(task.sim, name).copy_(value)
  factor = task.sim.body_mass[:, 1:] / task.constant(task.model.body_mass)[1:]
  assert factor.min() >= 1.1 - 1e-6
  assert factor.max() < 1.2 + 1e-6


def test_draws_on_one_field_follow_each_other_and_have_numbers_of_their_own():
  draws = {
    "down": randomize.put("gravity", -10.0, -9.0, 2),
    "half": randomize.scale("gravity", 0.5, 0.5, 2),
    "sideways": randomize.add("gravity", -1.0, 1.0, slice(0, 2), each=True),
  }
  _, randomization = made(draws)
  x, y, z = randomization.draw()["gravity"].unbind(1)
  assert -5 <= z.min() < z.max() <= -4.5
  assert not x.allclose(y)
  assert max(x.abs().max(), y.abs().max()) <= 1


def test_a_logarithmic_draw_halves_as_often_as_it_doubles():
  _, randomization = made({"all": randomize.scale("body_mass", 0.25, 4.0, log=True)}, num_envs=2048)
  mass = randomization.draw()["body_mass"][:, 1]
  ratio = mass / mass.log().mean().exp()
  assert (ratio.log() < 0).float().mean() == pytest.approx(0.5, abs=0.05)
  assert ratio.log().max() == pytest.approx(math.log(4), abs=0.1)


def test_in_evaluation_nothing_is_drawn():
  _, randomization = made({"floor": randomize.friction(0.5, 1.25)}, num_envs=2, training=False)
  assert randomization.draw() == {}


def test_a_field_that_does_not_vary_is_named():
  with pytest.raises(ValueError, match=r"^randomising 'bend': vary lacks 'dof_damping', nearest: '\w+'$"):
    made({"bend": randomize.scale("dof_damping", 0.5, 2.0)}, num_envs=2)


@pytest.mark.parametrize("bodies", ["torso", ["torso"], ("front_left_leg", "torso")])
def test_a_name_in_place_of_rows_is_refused(bodies):
  with pytest.raises(ValueError, match=r"^randomising 'trunk': write self\.body_of\('\w+'\) or the like, "):
    made({"trunk": randomize.mass(0.5, 2.0, bodies)}, num_envs=2)


def test_a_range_upside_down_is_refused():
  with pytest.raises(ValueError, match=r"drawn in \[2, 1\): write low <= high"):
    randomize.friction(2.0, 1.0)
  with pytest.raises(ValueError, match="write 0 < low <= high"):
    randomize.scale("body_mass", 0.0, 1.0, log=True)


def test_a_draw_at_intervals_changes_the_physics_within_an_episode():
  class Slippery(Varied):
    def setup(self):
      super().setup()
      self.randomization = randomize.Randomization(self, {"all": randomize.friction(0.1, 0.2)})
      self.every(self.dt, self.dt, self.randomization.draw)

  task = Slippery(ant.Config(), 8, random=Random(0, 8))
  task.reset()
  task.step(torch.zeros(8, 8))
  assert task.sim.geom_friction[..., 0].max() < 0.2


def test_what_is_applied_holds_for_good():
  task, randomization = made({"all": randomize.friction(0.1, 0.2)}, num_envs=8)
  randomization.apply()
  drawn = task.sim.geom_friction[:, 0, 0].clone()
  assert drawn.max() < 0.2
  task.reset()
  assert task.sim.geom_friction[:, 0, 0].equal(drawn)
