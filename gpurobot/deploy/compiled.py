"""Exported policy in C++, compiled and called from Python."""

import ctypes
import subprocess
import weakref
from collections.abc import Mapping
from pathlib import Path

import torch
from torch import Tensor

from gpurobot.deploy.header import HEADER

COMPILER = "g++"
SHIM = f"""#include "{HEADER}"
extern "C" {{
extern const int actions = policy::kActions;
policy::Policy* make(int count) {{ return new policy::Policy[count]; }}
void release(policy::Policy* robots) {{ delete[] robots; }}
void step(policy::Policy* robots, int count, const float* observations, const bool* restart, float* out) {{
  for (int i = 0; i < count; ++i) {{
    if (restart[i]) robots[i] = policy::Policy();
    robots[i].step(observations + i * policy::kObservation);
    std::copy(robots[i].action, robots[i].action + actions, out + i * actions);
  }}
}}
}}
"""


class Compiled:
  """Policy of a header for `num_envs` environments; called like `Policy`, without noise."""

  def __init__(self, folder: Path, num_envs: int) -> None:
    """Compile the header of a folder there."""
    source, library = folder / "shim.cpp", folder / "policy.so"
    source.write_text(SHIM)
    subprocess.run([COMPILER, "-std=c++17", "-O3", "-shared", "-fPIC", source, "-o", library], check=True)
    self._library = ctypes.CDLL(str(library))
    self._library.make.restype = ctypes.c_void_p
    self._robots = ctypes.c_void_p(self._library.make(num_envs))
    weakref.finalize(self, self._library.release, self._robots)
    self._actions = ctypes.c_int.in_dll(self._library, "actions").value

  def __call__(self, obs: Mapping[str, Tensor], restart: Tensor) -> Tensor:
    """Return actions [num_envs, num_actions] for observation groups; see `Policy`."""
    inputs, fresh = obs["policy"].float().cpu().contiguous(), restart.cpu().contiguous()
    action = torch.zeros(len(inputs), self._actions)
    pointers = (ctypes.c_void_p(tensor.data_ptr()) for tensor in (inputs, fresh, action))
    self._library.step(self._robots, len(inputs), *pointers)
    return action.to(obs["policy"].device)
