"""Choice of the gradient steps that are replayed on a CPU, see `Tape`."""

from gpurobot.algorithm_config import OffPolicyConfig, PPOConfig
from gpurobot.learn.env import VecEnv, images_of

# Samples of a rank's gradient step up to which it is replayed. With more of them Python takes little time,
# and while a step is recorded all of its results are kept, some 6 kB for a sample and 450 hidden units.
LARGEST = 32768


def replayed(settings: PPOConfig | OffPolicyConfig, env: VecEnv, count: int) -> bool:
  """Return whether gradient steps on `count` samples are replayed on a CPU.

  Code of the user's own runs in each step: it may do more than torch's operations.
  """
  own_code = settings.loss or settings.network
  return count <= LARGEST and not own_code and not images_of(env)
