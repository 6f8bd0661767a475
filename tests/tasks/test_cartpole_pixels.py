import pytest
import torch

from gpurobot.learn.random import Random
from gpurobot.settings.config import assign
from tasks import cartpole, cartpole_pixels
from tasks.core.errors import TaskError


def make(num_envs=4, training=False, **settings):
  config = assign(cartpole_pixels.Config(), settings)
  return cartpole_pixels.Task(config, num_envs, random=Random(0, num_envs), training=training)


def test_the_policy_sees_frames_and_the_critic_the_state():
  task = make(camera_size=24, stack_camera=2)
  obs = task.reset()
  assert task.obs_dims == {"policy": 0, "critic": 4}
  assert obs["camera"].shape == (4, 24, 24, 2)
  assert obs["camera"].dtype is torch.uint8
  assert torch.equal(obs["camera"][..., 0], obs["camera"][..., 1])  # of an episode that starts
  first = obs["camera"][..., 1].clone()
  step = task.step(torch.ones(4, 1))
  assert torch.equal(step["obs", "camera"][..., 0], first)
  assert not torch.equal(step["obs", "camera"][..., 1], first)


def column(image: torch.Tensor, rows: slice) -> torch.Tensor:
  """Return where the pixels of some rows are bright, in the mean, from -1 to 1."""
  weight = image[:, rows, :, -1].float()
  return (weight.sum(1) * torch.linspace(-1, 1, image.shape[2])).sum(1) / weight.sum((1, 2))


def test_a_leaning_pole_and_a_moved_cart_show():
  task = make(num_envs=3)
  task.reset()
  task.sim.qpos[:] = torch.tensor([[0.0, -0.3], [0.0, 0.0], [0.0, 0.3]])
  seen = look(task)
  pole = column(seen, slice(0, 20))
  assert pole[0] < -0.1 < pole[1] - 0.05 < 0.05 < pole[2]
  task.sim.qpos[:] = torch.tensor([[-2.0, 0.0], [0.0, 0.0], [2.0, 0.0]])
  posts = look(task)[:, 26:].amax((1, 2, 3)).tolist()
  assert posts[0] + 10 < posts[1] < posts[2] - 10
  assert torch.equal(look(task)[0, :20], look(task)[2, :20])  # the camera rides along


def look(task) -> torch.Tensor:
  everywhere = torch.ones(task.num_envs, dtype=torch.bool)
  task.sim.forward(everywhere)
  task.look_again(everywhere)
  return task.observations.restart(task.observe(), everywhere)["camera"]


def test_physics_and_rewards_are_those_of_cartpole():
  seeing = make(training=True)
  feeling = cartpole.Task(cartpole.Config(), 4, random=Random(0, 4))
  for task in (seeing, feeling):
    task.reset()
  for action in torch.rand(30, 4, 1, generator=torch.Generator().manual_seed(0)) * 2 - 1:
    one, other = seeing.step(action), feeling.step(action)
    assert torch.equal(one["reward"], other["reward"])
    assert torch.equal(one["obs", "critic"], other["obs", "policy"])


def test_an_image_has_no_mirror(monkeypatch):
  monkeypatch.setattr(cartpole_pixels.Task, "symmetry", lambda _self: {"action": [-1]})
  with pytest.raises(TaskError, match=r"this task observes images: return \{\}"):
    make()
