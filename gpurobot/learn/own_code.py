"""Networks and losses of the user's own."""

import contextlib
from collections.abc import Mapping

import torch
from tensordict import TensorDictBase
from torch import Tensor, nn

from gpurobot.config import ConfigError
from gpurobot.learn.critic import ValuePrediction
from gpurobot.learn.distribution import Distribution
from gpurobot.references import find, own_errors

NETWORK, LOSS, TEACHER_NETWORK = "network", "ppo.loss", "distill.teacher_network"  # settings
OF_TRAINING = (LOSS, TEACHER_NETWORK)  # settings with code that a trained policy does not need
# Modules whose numbers depend on more than weights and input: on torch's random numbers, which no checkpoint
# keeps, or on moments of one rank's samples.
UNSTEADY = (nn.modules.batchnorm._BatchNorm, nn.modules.dropout._DropoutNd)


def own_layers(reference: str, width: int, hidden: list[int]) -> tuple[nn.Module, int]:
  """Return the module that the function or class of a reference builds, and the width of its outputs.

  It is called with the width of the inputs and a list of units, `hidden`, for its own use. The module maps
  [..., width] to [..., any width], for any number of leading dimensions. Raises ConfigError if it does not.
  """
  build = find(NETWORK, reference)
  with own_errors(NETWORK, reference), torch.no_grad():
    network = build(width, list(hidden))
    if not isinstance(network, nn.Module):
      raise ConfigError(f"{NETWORK}={reference} returns {network!r}; return a torch.nn.Module")
    outputs = {rows: network(torch.zeros(*rows, width)) for rows in ((2,), (1, 2))}
  for rows, output in outputs.items():
    if _shape(output)[:-1] != rows:
      raise ConfigError(
        f"{NETWORK}={reference}: of an input {[*rows, width]} it makes {_words(output)}; "
        "keep all dimensions but the last"
      )
  for module in network.modules():
    if isinstance(module, UNSTEADY):
      raise ConfigError(
        f"{NETWORK}={reference} has a {type(module).__name__}, whose numbers a resumed run or another number "
        "of ranks cannot repeat; leave it out, or take LayerNorm to normalise"
      )
  return network, output.shape[-1]


class OwnLoss:
  """Function `loss(terms, policy, value, batch) -> terms` of the user's own that changes the terms of PPO.

  terms: those of `loss.loss_terms` by name, of each sample [...]; their sum is minimised. policy and value
  [...] are those of the current network. batch [...]: the samples, see `loss.loss_terms`, with their
  normalised observations in batch["obs"].
  """

  def __init__(self, reference: str) -> None:
    """Find the function; raise ConfigError if there is none."""
    self.reference, self._function = reference, find(LOSS, reference)

  def __call__(
    self, terms: dict[str, Tensor], policy: Distribution, value: ValuePrediction, batch: TensorDictBase
  ) -> Mapping[str, Tensor]:
    """Return the user's terms; raise ConfigError if they are not what they should be."""
    watch = contextlib.nullcontext() if torch.compiler.is_compiling() else own_errors(LOSS, self.reference)
    with watch:
      own: Mapping[str, Tensor] = self._function(dict(terms), policy, value, batch)
    if not isinstance(own, Mapping) or not own:
      raise ConfigError(f"{LOSS}={self.reference} returns {own!r}; return a dictionary of terms")
    for name, term in own.items():
      if _shape(term) != batch.shape:
        raise ConfigError(
          f"{LOSS}={self.reference}: the term {name} is {_words(term)}; "
          f"return a number for each sample, {list(batch.shape)}"
        )
    return own


def _shape(value: object) -> torch.Size:
  return value.shape if isinstance(value, Tensor) else torch.Size()


def _words(value: object) -> str:
  return str(list(value.shape)) if isinstance(value, Tensor) else f"{value!r}, and no tensor"
