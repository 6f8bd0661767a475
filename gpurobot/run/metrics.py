"""The columns of the log: what each one means, and where TensorBoard shows it."""

from typing import NamedTuple


class Metric(NamedTuple):
  """A column of metrics.csv; a star stands for any name, in column and tag alike."""

  column: str
  tag: str  # of TensorBoard: what comes before the slash is its group
  description: str


# Of several that fit a column the first counts. Means are over the interval since the last row and all ranks.
METRICS = (
  Metric("return", "episode/return", "sum of the raw rewards of an episode, mean over those that ended"),
  Metric("length", "episode/length", "steps of an episode, mean over those that ended"),
  Metric("episodes", "episode/count", "episodes that ended"),
  Metric("success", "episode/success", "share of the ended episodes that reached their aim"),
  Metric("reward/min", "reward/min", "least raw reward of a step"),
  Metric("reward/max", "reward/max", "greatest raw reward of a step"),
  Metric("reward/*", "reward/*", "this term of the raw reward with its weight, mean over steps"),
  Metric("entropy", "policy/entropy", "entropy of the actions [nat]: how much is still explored"),
  Metric("kl", "policy/kl", "KL divergence of the new from the old policy [nat]; ppo.kl_target steers it"),
  Metric("clipped", "policy/clipped", "share of samples whose probability ratio was clipped"),
  Metric("action/std", "policy/action_std", "standard deviation of the actions, mean over their dimensions"),
  Metric("policy_loss", "loss/policy", "clipped surrogate objective of the policy"),
  Metric("value_loss", "loss/value", "error of the critic, in units of the returns' variance"),
  Metric("bounds_loss", "loss/bounds", "squared excess of the action means beyond +-1.1"),
  Metric("mirror_loss", "loss/mirror", "squared difference of the actions from those of the mirrored robot"),
  Metric("explained_variance", "value/explained_variance", "share of the returns' variance that is foreseen"),
  Metric("value/mean", "value/mean", "mean value of the states, in units of the transformed reward"),
  Metric("gradient_norm", "update/gradient_norm", "length of the gradient before clipping, mean"),
  Metric("gradient_norm_max", "update/gradient_norm_max", "length of the longest gradient before clipping"),
  Metric("learning_rate", "update/learning_rate", "step size of Adam"),
  Metric("skipped_updates", "update/skipped", "optimiser steps left out so far, their gradients not finite"),
  Metric("obs/min", "obs/min", "least number in the last observations of a rollout, before normalisation"),
  Metric("obs/max", "obs/max", "greatest number in the last observations of a rollout, before normalisation"),
  Metric("obs/clipped", "obs/clipped", "share of normalised observations at their bound"),
  Metric("overflow", "physics/overflow", "contacts dropped so far for lack of room"),
  Metric("nonfinite", "physics/nonfinite", "environments reset so far because their state was not finite"),
  Metric(
    "nonfinite_samples",
    "update/nonfinite_samples",
    "samples left out so far because an observation or a reward was not finite",
  ),
  Metric("steps_per_second", "speed/all", "environment steps per second of the whole training"),
  Metric("steps_per_second/*", "speed/*", "environment steps per second of time spent in this part"),
  Metric("time/*", "time/*", "share of this part in the time"),
  Metric("memory/process", "machine/process_memory", "most memory of the main rank's process so far [GB]"),
  Metric("memory/device", "machine/device_memory", "memory in use on the main rank's GPU [GB]"),
  Metric("utilisation", "machine/utilisation", "share of the GPU's time, or of the CPU cores', in use"),
  Metric("collectives", "machine/collectives", "messages among all ranks, per iteration"),
  Metric("iteration", "progress/iteration", "updates so far"),
  Metric("steps", "progress/steps", "environment steps so far"),
  Metric("seconds", "progress/seconds", "training time so far [s]"),
  Metric("*", "task/*", "a metric of the task, mean over steps"),
)


def find(column: str) -> Metric:
  """Return what is known of a column, its own name in the place of the star."""
  for metric in METRICS:
    start, star, _ = metric.column.partition("*")
    if column == metric.column or (star and column.startswith(start)):
      name = column.removeprefix(start)
      return Metric(column, metric.tag.replace("*", name), metric.description)
  raise AssertionError("the last metric fits every column")
