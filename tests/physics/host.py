"""The text that a thread of a GPU runs, one environment, compiled for this machine under the sanitizers."""

import os
import shutil
import subprocess

import numpy as np

from physics.trace.emit import native_source
from tests.lacking import lacking

COMPILER = shutil.which("g++") or shutil.which("clang++")
# Plain IEEE arithmetic, so that a difference has its cause in the text: nothing is contracted, reordered or
# flushed to zero. The GPU's fast mathematics cannot be had here anyway. Without optimisation every array has
# its place in memory, where it can be watched, and a model takes seconds to compile.
FLAGS = (
  *("-std=c++17", "-O0", "-ffp-contract=off", "-Wno-unknown-pragmas"),
  *("-fsanitize=address,undefined,float-cast-overflow", "-fno-sanitize-recover=all"),
  "-no-pie",  # an executable at a random place may lie where AddressSanitizer wants to have its heap
  "-Werror=frame-larger-than=1048576",  # what `paint` covers
)
# Off is what a container may forbid, and what would move arrays from the stack that is painted.
OPTIONS = {"ASAN_OPTIONS": "detect_leaks=0:detect_stack_use_after_return=0"}

# The few names of Warp that the text uses, and a loop over environments. Before each of them the stack is
# painted where the step will have its frame.
PROGRAM = """
#include <alloca.h>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

namespace wp {
typedef float float32;
template <typename Number> struct array_t { Number* data; int strides[2]; };
using std::sqrt; using std::abs; using std::sin; using std::cos;
using std::exp; using std::floor; using std::atan2; using std::pow;
}

const size_t FRAME = 1 << 20;

__attribute__((noinline, no_sanitize("address", "undefined"))) static void paint(int byte) {
  memset(alloca(FRAME), byte, FRAME);
}

typedef wp::array_t<wp::float32> Rows;

// A block has a second thread here, which is never done.
static void __syncthreads() {}
static int __syncthreads_or(int) { return 1; }

__attribute__((noinline)) static void step(
  int env, int substeps, int stride, int integrate, Rows& state, Rows& control, Rows& parameters
) {
%s
}

int main(int, char** arguments) {
  int numbers[8];
  for (int i = 0; i < 8; ++i) numbers[i] = atoi(arguments[i + 1]);
  const int byte = numbers[0], envs = numbers[1], row = envs * (int)sizeof(float);
  std::vector<float> memory[3];
  Rows rows[3];
  for (int i = 0; i < 3; ++i) {
    memory[i].resize((size_t)numbers[5 + i] * envs);
    if (fread(memory[i].data(), sizeof(float), memory[i].size(), stdin) != memory[i].size()) return 1;
    rows[i] = Rows{memory[i].data(), {row, (int)sizeof(float)}};
  }
  for (int env = 0; env < envs; ++env) {
    paint(byte);
    step(env, numbers[2], numbers[3], numbers[4], rows[0], rows[1], rows[2]);
  }
  return fwrite(memory[0].data(), sizeof(float), memory[0].size(), stdout) != memory[0].size();
}
"""


class Host:
  """A program's text as an executable, in a folder."""

  def __init__(self, program, folder, in_step=False):
    if not COMPILER:
      lacking("needs a C++ compiler: apt-get install g++")
    self.executable = folder / "step"
    source = folder / "step.cpp"
    source.write_text(PROGRAM % native_source(program, 1, False, in_step))
    subprocess.run([COMPILER, *FLAGS, source, "-o", self.executable], check=True)

  def run(self, parameters, arrays, byte=0):
    """Return the state [row, env] after a launch.

    Args:
      parameters: substeps, stride, integrate.
      arrays: state, control and parameters, each [row, env].
      byte: what fills the stack before each environment.

    What a sanitizer reports is an error.
    """
    arrays = [np.ascontiguousarray(array, np.float32) for array in arrays]
    state = arrays[0]
    numbers = (byte, state.shape[1], *parameters, *map(len, arrays))
    done = subprocess.run(
      [self.executable, *map(str, numbers)],
      input=b"".join(array.tobytes() for array in arrays),
      capture_output=True,
      check=False,
      env=os.environ | OPTIONS,
    )
    assert done.returncode == 0, done.stderr.decode()
    return np.frombuffer(done.stdout, np.float32).reshape(state.shape)
