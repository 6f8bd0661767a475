"""Columns of the log: their meanings and their TensorBoard tags."""

import math
from collections.abc import Mapping
from typing import NamedTuple


class Metric(NamedTuple):
  """Column of metrics.csv; a star stands for any name, both in the column and in the tag."""

  column: str
  tag: str  # of TensorBoard, which groups tags by the part before the slash
  description: str


# The first entry that matches a column is used. Means are over all ranks and the time since the last row.
METRICS = (
  Metric("return", "episode/return", "undiscounted sum of raw rewards, mean over ended episodes"),
  Metric("greedy_return", "episode/greedy_return", "the same of episodes without noise, by sac.greedy_envs"),
  Metric("teacher_return", "episode/teacher_return", "the same of episodes that a teacher drove throughout"),
  Metric("length", "episode/length", "number of steps, mean over ended episodes"),
  Metric(
    "episodes",
    "episode/count",
    "ended episodes, but not the first of an environment: it starts at a random age",
  ),
  Metric("success", "episode/success", "share of the ended episodes that succeeded"),
  Metric("reward/min", "reward/min", "smallest raw reward of a step"),
  Metric("reward/max", "reward/max", "largest raw reward of a step"),
  Metric("reward/*", "reward/*", "term of the raw reward, weighted, mean over steps"),
  Metric("entropy", "policy/entropy", "entropy of the action distribution [nat]"),
  Metric(
    "kl", "policy/kl", "KL divergence from the old policy (target: ppo.kl_target) or from the teacher [nat]"
  ),
  Metric("clipped", "policy/clipped", "share of samples with a clipped probability ratio"),
  Metric("action/std", "policy/action_std", "standard deviation of the actions, mean over their dimensions"),
  Metric("policy_loss", "loss/policy", "clipped surrogate objective of the policy"),
  Metric(
    "value_loss", "loss/value", "loss of the critic, in variances of the returns; of a two-hot one in nat"
  ),
  Metric("bounds_loss", "loss/bounds", "squared excess of the action means beyond +-1.1"),
  Metric("mirror_loss", "loss/mirror", "squared difference of the actions from the mirrored robot's"),
  Metric(
    "own_loss/*",
    "own_loss/*",
    "term of the loss that ppo.loss (sac, td3) returns, weighted, mean over samples",
  ),
  Metric("estimate/*", "estimate/*", "root mean square error of a block that ppo.estimate names"),
  Metric("explained_variance", "value/explained_variance", "explained variance of the returns by the critic"),
  Metric("value/mean", "value/mean", "mean value of the states, in units of the transformed reward"),
  Metric(
    "behaviour/kl", "policy/behaviour_kl", "KL divergence of the policy that acted from the new one [nat]"
  ),
  Metric("behaviour/age", "policy/behaviour_age", "updates since the policy that acted, with overlap=true"),
  Metric(
    "teacher_error",
    "teacher/error",
    "squared difference of actions from the teacher's; of choices, the share that differs",
  ),
  Metric("teacher_share", "teacher/share", "share of environments that a teacher drives in a rollout"),
  Metric("amp/reward", "amp/reward", "style reward times its weight, mean over samples"),
  Metric("amp/share", "amp/share", "share of the style reward in the magnitudes of all rewards"),
  Metric(
    "amp/policy_accuracy",
    "amp/policy_accuracy",
    "accuracy of the discriminator on the policy's transitions",
  ),
  Metric(
    "amp/reference_accuracy",
    "amp/reference_accuracy",
    "accuracy of the discriminator on the reference's transitions",
  ),
  Metric("amp/loss", "amp/loss", "least-squares loss of the discriminator, without its penalties"),
  Metric(
    "amp/gradient_penalty", "amp/gradient_penalty", "squared gradient of the discriminator at the reference"
  ),
  Metric("amp/*", "amp/*", "norm of the discriminator's gradient before clipping"),
  Metric("rnd/reward", "rnd/reward", "novelty reward times its weight, mean over samples"),
  Metric("rnd/share", "rnd/share", "share of the novelty reward in the magnitudes of all rewards"),
  Metric("rnd/error", "rnd/error", "error of the predictor, mean over its samples and outputs"),
  Metric("rnd/*", "rnd/*", "norm of the predictor's gradient before clipping"),
  Metric("temperature", "policy/temperature", "weight of the entropy in SAC, in units of the reward"),
  Metric("sample_age", "replay/age", "environment steps since a transition of a batch, mean"),
  Metric("replay/filled", "replay/filled", "share of the replay buffer that is filled"),
  Metric("updates_per_sample", "replay/updates_per_sample", "how often a transition is learnt from, mean"),
  Metric("reward_scale", "update/reward_scale", "factor on the reward before its transform"),
  Metric("gradient_norm", "update/gradient_norm", "mean norm of the gradient before clipping"),
  Metric("gradient_norm_max", "update/gradient_norm_max", "maximum norm of the gradient before clipping"),
  Metric("learning_rate", "update/learning_rate", "learning rate of Adam"),
  Metric("skipped_updates", "update/skipped", "optimiser steps skipped so far, as a gradient was not finite"),
  Metric("obs/min", "obs/min", "minimum of the last observations of a rollout, before normalisation"),
  Metric("obs/max", "obs/max", "maximum of the last observations of a rollout, before normalisation"),
  Metric("obs/clipped", "obs/clipped", "share of normalised observations at the clip bound"),
  Metric("overflow", "physics/overflow", "contacts dropped so far, as they exceeded the capacity"),
  Metric("nonfinite", "physics/nonfinite", "environments reset so far, as they diverged"),
  Metric(
    "nonfinite_samples",
    "update/nonfinite_samples",
    "samples left out so far, as an observation or reward was not finite",
  ),
  Metric("steps_per_second", "speed/all", "environment steps per second of training time"),
  Metric("steps_per_second/*", "speed/*", "environment steps per second of the time in this part"),
  Metric("time/*", "time/*", "share of the training time in this part; over 1 in all with overlap=true"),
  Metric("memory/process", "machine/process_memory", "peak memory of the main rank's process [GB]"),
  Metric("memory/device", "machine/device_memory", "memory in use on the main rank's GPU [GB]"),
  Metric("utilisation", "machine/utilisation", "utilisation of the GPU, or of the CPU cores, 0 ... 1"),
  Metric("collectives", "machine/collectives", "collective operations over the ranks, per iteration"),
  Metric("iteration", "progress/iteration", "iterations so far"),
  Metric("steps", "progress/steps", "environment steps so far"),
  Metric("seconds", "progress/seconds", "training time so far [s]"),
  Metric("*", "task/*", "metric of the task, mean over steps"),
)


def find(column: str) -> Metric:
  """Return the metric of a column, with the star replaced by the column's name."""
  for metric in METRICS:
    start, star, _ = metric.column.partition("*")
    if column == metric.column or (star and column.startswith(start)):
      name = column.removeprefix(start)
      return Metric(column, metric.tag.replace("*", name), metric.description)
  raise AssertionError("the last metric matches every column")


def tagged(row: Mapping[str, float]) -> dict[str, float]:
  """Return the finite numbers of a row by tag."""
  return {find(column).tag: value for column, value in row.items() if math.isfinite(value)}
