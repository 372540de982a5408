// The kernels of fused elementwise ops, as launch.h has those of other ops.
#pragma once
#include "cuda/plugin/launch.h"

namespace fleetrun::cuda {

// out = act(x + y), or x + act(y) with act_of_y; act(v) = max(v, 0), or v * scale + bias.
struct AddAct {
  bool relu, act_of_y;
  float scale, bias;
};
void add_act(Number type, const void* x, const void* y, void* out, const AddAct& how, std::int64_t count,
             cudaStream_t stream);
// dx = dy + more where y > 0, else 0. `more` may be null.
void add_act_grad(Number type, const void* y, const void* dy, const void* more, void* dx, std::int64_t count,
                  cudaStream_t stream);

// The steps of an elementwise_group, in f32. A source below kGroupArrays is an input, others are places of results, from
// kGroupArrays on.
constexpr int kGroupArrays = 8, kGroupResults = 4, kMostGroupSteps = 16;
struct GroupStep {
  enum class Do : std::uint8_t { add, relu, relu_grad, clamp, clamp_grad, scale } what;
  std::uint8_t a, b, result;  // result: a place
  float first, second;        // numbers of the op
};
struct GroupSteps {
  GroupStep steps[kMostGroupSteps];
  std::uint8_t count,
      places;  // places: that results take, which are used again when nobody reads them any more
  std::uint8_t outputs;
  std::uint8_t kept[kGroupResults];  // the place of each output
};
struct GroupArrays {
  const float* in[kGroupArrays];
  float* out[kGroupResults];
};
void run_group(const GroupSteps& steps, const GroupArrays& arrays, std::int64_t count, cudaStream_t stream);

}  // namespace fleetrun::cuda
