"""Long runs under random controls: dropped contacts and divergence are found."""

import dataclasses
import sys

import numpy as np

import physics
from physics.parity.random_play import random_play

BALLS = "<body pos='0 0 {}'><freejoint/><geom size='0.1'/></body>"
PILE = f"""<mujoco><worldbody><geom type="plane" size="1 1 1"/>
  {"".join(BALLS.format(0.1 + 0.15 * k) for k in range(4))}</worldbody></mujoco>"""
SERVO = """<mujoco><option timestep="0.01"/>
  <worldbody><body><joint name="j" type="slide"/><geom size="0.1" mass="{mass}"/></body></worldbody>
  <actuator><position joint="j" kp="1000" ctrlrange="-1 1"/></actuator></mujoco>"""


def test_dropped_contacts_are_found():
  model = physics.load_model(PILE)
  for capacity, holds in ((None, True), (1, False)):
    dropped, diverging = random_play(model, physics.Simulation(model, 2, moving_capacity=capacity))
    assert dropped.holds == holds
    assert diverging.holds


def test_divergence_is_judged_by_mujocos():
  stable, wild = (physics.load_model(SERVO.format(mass=mass)) for mass in (10.0, 0.01))
  _, diverging = random_play(wild, physics.Simulation(wild, 4))
  assert (diverging.error.tolist(), diverging.holds) == ([1.0], True), "MuJoCo C diverges too"
  other = dataclasses.replace(wild, mj=stable.mj)
  _, diverging = random_play(other, physics.Simulation(other, 4))
  assert (diverging.bound.tolist(), diverging.holds) == ([0.0], False)


def test_a_share_of_few_environments_may_be_larger_by_chance(monkeypatch):
  wild = physics.load_model(SERVO.format(mass=0.01))
  for theirs, bound, holds in ((2, 0.5 + 2 * (2 * 0.5 * 0.5 / 4) ** 0.5, True), (0, 0.0, False)):
    monkeypatch.setattr(
      sys.modules[random_play.__module__], "_diverges", lambda *_, n=theirs: np.arange(4) < n
    )
    _, diverging = random_play(wild, physics.Simulation(wild, 4))
    assert (diverging.bound.tolist(), diverging.holds) == ([bound], holds)
