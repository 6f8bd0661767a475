"""Copies on the CPU: plain containers, tensors with memory of their own."""

import torch
from tensordict import TensorDict

from gpurobot.device.transfer import to_cpu


def test_containers_become_plain_and_tensors_have_their_own_memory():
  whole = torch.arange(1000.0, requires_grad=True)
  value = {"a": TensorDict({"b": whole[:2]}, batch_size=[2]), "c": (whole[2:4], 1.5, "text", None)}
  copied = to_cpu(value)
  assert type(copied["a"]) is dict
  assert type(copied["c"]) is list
  assert copied["c"][1:] == [1.5, "text", None]
  for tensor, expected in ((copied["a"]["b"], [0.0, 1.0]), (copied["c"][0], [2.0, 3.0])):
    assert tensor.tolist() == expected
    assert not tensor.requires_grad
    assert tensor.untyped_storage().nbytes() == 8
