// Policy of the task @TASK@, written by gpurobot export: float32, no allocation, no dependencies, C++17.
//
// Make a Policy for each robot, and call step() once per control step; then read `action` and `ctrl`. A new
// Policy starts an episode. What each number means is in policy.json.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>

namespace policy {

@SIZES@

@ARRAYS@

namespace detail {

// Weights [inputs][outputs]: the inner loop is over outputs, so that compilers vectorise it.
template <std::size_t In, std::size_t Out>
inline void linear(const float (&weight)[In][Out], const float (&bias)[Out], const float* x, float* y) {
  for (std::size_t o = 0; o < Out; ++o) y[o] = bias[o];
  for (std::size_t i = 0; i < In; ++i) {
    const float value = x[i];
    for (std::size_t o = 0; o < Out; ++o) y[o] += weight[i][o] * value;
  }
}

inline float clamp(float x, float bound) { return x < -bound ? -bound : (x > bound ? bound : x); }
inline float sigmoid(float x) { return 1.0f / (1.0f + std::exp(-x)); }
inline float elu(float x) { return x > 0.0f ? x : std::expm1(x); }
inline float relu(float x) { return x < 0.0f ? 0.0f : x; }
inline float silu(float x) { return x * sigmoid(x); }
inline float tanh(float x) { return std::tanh(x); }

template <std::size_t N>
inline void normalise(const float (&shift)[N], const float (&scale)[N], float bound, float* x) {
  for (std::size_t i = 0; i < N; ++i) x[i] = clamp((x[i] - shift[i]) / scale[i], bound);
}

template <std::size_t N>
inline void layer_norm(const float (&gain)[N], const float (&offset)[N], float epsilon, float* x) {
  float mean = 0.0f, variance = 0.0f;
  for (std::size_t i = 0; i < N; ++i) mean += x[i] / N;
  for (std::size_t i = 0; i < N; ++i) variance += (x[i] - mean) * (x[i] - mean) / N;
  const float factor = 1.0f / std::sqrt(variance + epsilon);
  for (std::size_t i = 0; i < N; ++i) x[i] = (x[i] - mean) * factor * gain[i] + offset[i];
}

inline int largest(const float* x, int count) {
  return static_cast<int>(std::max_element(x, x + count) - x);
}

// Gated recurrent unit, its output in x and in the state.
template <std::size_t In, std::size_t N, std::size_t Gates>
inline void gru(const float (&weight)[In][Gates], const float (&bias)[Gates], const float (&own)[N][Gates],
                const float (&own_bias)[Gates], float* x, float* state) {
  float input[Gates], hidden[Gates];
  linear(weight, bias, x, input);
  linear(own, own_bias, state, hidden);
  for (std::size_t i = 0; i < N; ++i) {
    const float reset = sigmoid(input[i] + hidden[i]), update = sigmoid(input[N + i] + hidden[N + i]);
    const float fresh = std::tanh(input[2 * N + i] + reset * hidden[2 * N + i]);
    x[i] = state[i] = fresh + update * (state[i] - fresh);
  }
}

// Long short-term memory, its output in x; the state is output and cell.
template <std::size_t In, std::size_t N, std::size_t Gates>
inline void lstm(const float (&weight)[In][Gates], const float (&bias)[Gates], const float (&own)[N][Gates],
                 const float (&own_bias)[Gates], float* x, float* state) {
  float input[Gates], hidden[Gates];
  linear(weight, bias, x, input);
  linear(own, own_bias, state, hidden);
  for (std::size_t i = 0; i < Gates; ++i) input[i] += hidden[i];
  for (std::size_t i = 0; i < N; ++i) {
    const float cell = sigmoid(input[N + i]) * state[N + i] + sigmoid(input[i]) * std::tanh(input[2 * N + i]);
    state[N + i] = cell;
    x[i] = state[i] = sigmoid(input[3 * N + i]) * std::tanh(cell);
  }
}

}  // namespace detail

@SENSORS@
struct Policy {
@MEMBERS@

  // Compute the action from an observation [kObservation].
  void step(const float* observation) {
    std::copy(observation, observation + kObservation, x);
@CALLS@
  }

@OBSERVE@

 private:
  float x[kWidest], y[kWidest];
};

}  // namespace policy
