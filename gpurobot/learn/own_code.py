"""Networks and losses of the user's own."""

import contextlib
from collections.abc import Mapping

import torch
from tensordict import TensorDictBase
from torch import Tensor, nn

from gpurobot.learn.critic import ValuePrediction
from gpurobot.learn.distribution import Distribution
from gpurobot.learn.statistics import Means
from gpurobot.settings.config import ConfigError
from gpurobot.settings.references import find, own_errors

NETWORK, TEACHER_NETWORK = "network", "distill.teacher_network"  # settings
# Settings with code that a trained policy does not need.
OF_TRAINING = ("ppo.loss", "sac.loss", "td3.loss", TEACHER_NETWORK)
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
  """Function `loss(terms, policy, value, batch) -> terms` of the user's own that changes the terms of a loss.

  terms: of the policy's loss, by name, for each sample [...]; their sum is minimised. policy [...] is the
  current one, value [...] what the current critic predicts: of PPO's states, or of an off-policy algorithm's
  new actions. batch [...]: the samples, see `loss.loss_terms` and `off_policy_batch.Batch.samples`, with
  their normalised observations in batch["obs"].
  """

  def __init__(self, key: str, reference: str, device: torch.device) -> None:
    """Find the function that the setting `key` refers to; raise ConfigError if there is none."""
    self.key, self.reference, self._function = key, reference, find(key, reference)
    self.means = Means(f"the terms of {key}={reference}", device)  # for the log

  def __call__(
    self,
    terms: dict[str, Tensor],
    policy: Distribution,
    value: ValuePrediction | Tensor,
    batch: TensorDictBase,
  ) -> Mapping[str, Tensor]:
    """Return the user's terms; raise ConfigError if their names, shapes or types are wrong."""
    key, reference = self.key, self.reference
    watch = contextlib.nullcontext() if torch.compiler.is_compiling() else own_errors(key, reference)
    with watch:
      own: Mapping[str, Tensor] = self._function(dict(terms), policy, value, batch)
    if not isinstance(own, Mapping) or not own:
      raise ConfigError(f"{key}={reference} returns {own!r}; return a dictionary of terms")
    for name, term in own.items():
      if _shape(term) != batch.shape:
        raise ConfigError(
          f"{key}={reference}: the term {name} is {_words(term)}; "
          f"return a number for each sample, {list(batch.shape)}"
        )
    return own

  def keep(self, terms: Mapping[str, Tensor], weight: Tensor) -> None:
    """Add terms [...] to the means for the log, where their weight [...] is positive."""
    shown = {f"own_loss/{name}": term.detach().float().flatten() for name, term in terms.items()}
    self.means.add(shown, weight.flatten() > 0)


def _shape(value: object) -> torch.Size:
  return value.shape if isinstance(value, Tensor) else torch.Size()


def _words(value: object) -> str:
  return str(list(value.shape)) if isinstance(value, Tensor) else f"{value!r}, and no tensor"
