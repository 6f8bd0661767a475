"""Farthest vertex of a hull: lanes take turns, and vertices are processed side by side instead.

A search has few lanes that still run, and each may have another hull. Vertices come in clusters of `CLUSTER`,
as many as a vector holds. Of a hull with more than as many clusters, the others are visited only where their
bounding spheres reach farther than what has been found.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

CLUSTER = 16  # vertices of a cluster


@dataclass(frozen=True, eq=False)
class Clusters:
  """The vertices of all hulls, cluster after cluster; a shorter cluster repeats its last vertex."""

  vertices: tuple[tuple[float, ...], ...]  # [3][cluster * CLUSTER] [m]
  numbers: tuple[float, ...]  # [cluster * CLUSTER] of the vertices
  starts: tuple[int, ...]  # [hull + 1] first cluster
  spheres: tuple[
    tuple[float, ...], ...
  ]  # [4][cluster + CLUSTER] centre and radius [m]; the last ones are empty


def farthest(x: Any, y: Any, z: Any, numbers: Any, starts: Any, *asked: Any) -> Any:
  """Return the farthest vertex's number in every lane, for hull and direction of each, by NumPy."""
  hulls, *direction = np.broadcast_arrays(*asked)
  result = np.zeros_like(direction[0])
  for hull in np.unique(hulls).astype(int).tolist():
    here, part = hulls == hull, slice(CLUSTER * starts[hull], CLUSTER * starts[hull + 1])
    towards = np.stack([d[here] for d in direction])
    along = np.stack([x[part], y[part], z[part]], axis=1).astype(towards.dtype, copy=False) @ towards
    result[here] = numbers[part][along.argmax(axis=0)]
  return result


_PARAMETERS = (
  "const float* x, const float* y, const float* z, const float* numbers, const int* starts,"
  " const float* cx, const float* cy, const float* cz, const float* radius, T hull, T dx, T dy, T dz, M lanes"
)

_SCALAR = f"""
auto farthest_ = [&]({_PARAMETERS}) -> T {{
  const int h = (int)hull; int at = {CLUSTER} * starts[h]; float best = -1e10f;
  if (lanes)
    #pragma unroll 1
    for (int c = starts[h]; c < starts[h + 1]; ++c)
      if (cx[c] * dx + cy[c] * dy + cz[c] * dz + radius[c] > best)
        #pragma unroll 1
        for (int v = {CLUSTER} * c; v < {CLUSTER} * (c + 1); ++v) {{
          const float along = x[v] * dx + y[v] * dy + z[v] * dz;
          if (along > best) {{ best = along; at = v; }}
        }}
  return numbers[at]; }};
"""

# The compiler's own reduction to the greatest float goes from element to element, for the sake of nan.
_VECTOR = f"""
typedef float V __attribute__((ext_vector_type({CLUSTER})));
typedef float VU __attribute__((ext_vector_type({CLUSTER}), aligned(4)));
typedef int I __attribute__((ext_vector_type({CLUSTER})));
typedef bool VB __attribute__((ext_vector_type({CLUSTER})));
auto bits_ = [](I mask) -> unsigned {{
  VB b = __builtin_convertvector(mask, VB);
  unsigned bits = 0; __builtin_memcpy(&bits, &b, sizeof(b)); return bits; }};
auto greatest_ = [](V v) -> float {{
#define GREATER_(...) {{ V w = __builtin_shufflevector(v, v, __VA_ARGS__); v = v > w ? v : w; }}
  GREATER_(8, 9, 10, 11, 12, 13, 14, 15, 0, 1, 2, 3, 4, 5, 6, 7)
  GREATER_(4, 5, 6, 7, 0, 1, 2, 3, 4, 5, 6, 7, 0, 1, 2, 3)
  GREATER_(2, 3, 0, 1, 2, 3, 0, 1, 2, 3, 0, 1, 2, 3, 0, 1)
  GREATER_(1, 0, 1, 0, 1, 0, 1, 0, 1, 0, 1, 0, 1, 0, 1, 0)
  return v[0]; }};
auto farthest_ = [&]({_PARAMETERS}) -> T {{
  T result = F(0.0f); const T asked[4] = {{hull, dx, dy, dz}};
  I places; for (int l = 0; l < {CLUSTER}; ++l) places[l] = l;
  for (unsigned left = lanes_(lanes); left; left &= left - 1) {{
    const float* own = (const float*)asked + lowest_(left);
    const int h = (int)own[0], first = starts[h], end = starts[h + 1];
    const V a = own[LANES], b = own[2 * LANES], g = own[3 * LANES];
    V best = V(-1e10f); I at = places + {CLUSTER} * first;
    for (int group = first; group < end; group += {CLUSTER}) {{
      unsigned more = 0xffffffffu >> (32 - (end - group < {CLUSTER} ? end - group : {CLUSTER}));
      const V reach = *(const VU*)(radius + group)
        + *(const VU*)(cx + group) * a + *(const VU*)(cy + group) * b + *(const VU*)(cz + group) * g;
      if (group != first) more &= bits_(reach > V(greatest_(best)));
      for (; more; more &= more - 1) {{
        const int v = {CLUSTER} * (group + lowest_(more));
        const V along = *(const VU*)(x + v) * a + *(const VU*)(y + v) * b + *(const VU*)(z + v) * g;
        const I farther = along > best;
        best = farther ? along : best; at = farther ? places + v : at; }}
    }}
    const int vertex = __builtin_reduce_min(best == V(greatest_(best)) ? at : I(0x7fffffff));
    lane_(result, lowest_(left)) = numbers[vertex];
  }}
  return result; }};
"""


def farthest_text(lanes: int) -> str:
  """Return the C++ function for `lanes` environments side by side."""
  return _SCALAR if lanes == 1 else _VECTOR
