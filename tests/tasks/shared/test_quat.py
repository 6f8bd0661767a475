"""Quaternions against rotations known by hand and against torch's own matrix exponential."""

import itertools
import math

import pytest
import torch

from tasks.shared import quat


def test_the_matrix_is_the_exponential_of_the_rotation_vector():
  vector = torch.randn(5, 3, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
  angle = vector.norm(dim=1, keepdim=True)
  q = torch.cat([(angle / 2).cos(), vector / angle * (angle / 2).sin()], dim=1)
  x, y, z = vector.unbind(1)
  zero = torch.zeros_like(x)
  skew = torch.stack([zero, -z, y, z, zero, -x, -y, x, zero], dim=1).view(5, 3, 3)
  torch.testing.assert_close(quat.to_matrix(q), torch.linalg.matrix_exp(skew))


def test_a_product_turns_by_its_second_factor_first():
  a, b = torch.nn.functional.normalize(
    torch.randn(2, 5, 4, generator=torch.Generator().manual_seed(2)), dim=-1
  )
  torch.testing.assert_close(quat.to_matrix(quat.multiply(a, b)), quat.to_matrix(a) @ quat.to_matrix(b))
  identity = torch.tensor([1.0, 0.0, 0.0, 0.0]).expand(5, 4)
  torch.testing.assert_close(quat.multiply(quat.conjugate(a), a), identity)


def test_the_rotation_vector_is_the_shorter_way():
  vector = torch.tensor([[0.3, -0.4, 1.2], [1e-5, 0.0, 0.0], [0.0, 0.0, 0.0], [0.0, math.pi, 0.0]])
  half = vector.norm(dim=1, keepdim=True) / 2
  q = torch.cat([half.cos(), 0.5 * torch.sinc(half / math.pi) * vector], dim=1)
  torch.testing.assert_close(quat.to_rotation_vector(q).abs(), vector.abs())
  torch.testing.assert_close(quat.to_rotation_vector(q)[:3], vector[:3])
  torch.testing.assert_close(quat.to_rotation_vector(-q)[:3], vector[:3])


def test_upright_is_the_vertical_part_of_the_z_axis():
  q = torch.nn.functional.normalize(torch.randn(2, 4, 4, generator=torch.Generator().manual_seed(3)), dim=-1)
  torch.testing.assert_close(quat.upright(q), quat.to_matrix(q)[..., 2, 2])


def test_a_rotation_vector_becomes_its_quaternion_and_back_also_at_zero():
  vector = torch.randn(6, 3, dtype=torch.float64, generator=torch.Generator().manual_seed(2))
  vector[0] = 0.0
  torch.testing.assert_close(quat.to_rotation_vector(quat.from_rotation_vector(vector)), vector)
  assert quat.from_rotation_vector(vector[0]).tolist() == [1.0, 0.0, 0.0, 0.0]


def test_turn_is_the_matrix_and_yaw_keeps_the_heading():
  random = torch.Generator().manual_seed(3)
  q = torch.nn.functional.normalize(torch.randn(7, 4, dtype=torch.float64, generator=random), dim=1)
  vector = torch.randn(7, 3, dtype=torch.float64, generator=random)
  turned = (quat.to_matrix(q) @ vector.unsqueeze(2)).squeeze(2)
  torch.testing.assert_close(quat.turn(q, vector), turned)
  heading = quat.from_rotation_vector(torch.tensor([[0.0, 0.0, 1.2]], dtype=torch.float64))
  leaning = quat.multiply(heading, quat.from_rotation_vector(torch.tensor([[0.3, 0.0, 0.0]]).double()))
  torch.testing.assert_close(quat.yaw(leaning), heading)


@pytest.mark.parametrize("angle", [0.0, 1e-4, 0.5, 3.0])
def test_the_turn_between_two_matrices_is_the_rotation_vector_of_the_way(angle):
  axis = torch.nn.functional.normalize(torch.tensor([[1.0, -2.0, 0.5]], dtype=torch.float64))
  first = quat.from_rotation_vector(torch.tensor([[0.3, 0.8, -1.2]], dtype=torch.float64))
  second = quat.multiply(quat.from_rotation_vector(angle * axis), first)
  found = quat.turn_between(quat.to_matrix(first), quat.to_matrix(second))
  torch.testing.assert_close(found, angle * axis, atol=1e-9, rtol=1e-9)


def test_the_24_rotations_of_a_cube_differ_and_keep_its_corners():
  corners = torch.tensor(list(itertools.product((-1.0, 1.0), repeat=3)))
  matrices = quat.to_matrix(torch.tensor(quat.CUBE_SYMMETRY)).round(decimals=4)
  assert len({tuple(matrix) for matrix in matrices.flatten(1).tolist()}) == 24
  for matrix in matrices:
    assert {tuple(corner) for corner in (corners @ matrix.T).tolist()} == set(map(tuple, corners.tolist()))


def test_the_smallest_rotation_says_nothing_of_which_side_is_up():
  tilt = quat.from_rotation_vector(torch.tensor([[0.18, 0.0, 0.24]])).expand(24, 4)
  symmetry = torch.tensor(quat.CUBE_SYMMETRY)
  smallest = quat.smallest_alike(quat.multiply(tilt, symmetry), symmetry)
  torch.testing.assert_close(smallest * smallest[:, :1].sign(), tilt)
