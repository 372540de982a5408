// Several ops that look at each element by itself, in one look at the tensors. An element of b bytes costs 3 b bytes in
// add_act, 3 b or 4 b in add_act_grad, and 4 bytes for each input and output of a group, which is f32.
#include "cuda/plugin/element_groups.h"

#include "cuda/plugin/elements.cuh"

namespace fleetrun::cuda {
namespace {

template <bool is_relu>
__device__ float act(float x, const AddAct& how) {
  return is_relu ? relu_of(x) : how.scale * x + how.bias;
}

// 2 b bytes read and b written per element. Predicted share of the memory bandwidth: 0.83; one element at a time, 0.7 in
// f32 and 0.4 in f16 and bf16.
template <int width, bool is_relu, typename T>
void add_act_of(const T* x, const void* y_, void* out_, const AddAct& how, std::int64_t count,
                cudaStream_t stream) {
  const auto* const y = static_cast<const T*>(y_);
  auto* const out = static_cast<T*>(out_);
  run_each(count / width, stream, [=] __device__(std::int64_t i) {
    float a[width], b[width];
    load<T>(x, i * width, a);
    load<T>(y, i * width, b);
    for (int k = 0; k < width; ++k)
      a[k] = how.act_of_y ? a[k] + act<is_relu>(b[k], how) : act<is_relu>(a[k] + b[k], how);
    store<T>(out, i * width, a);
  });
}

// 2 b bytes read, or 3 b with `more`, and b written per element. Predicted share of the memory bandwidth: 0.83; one
// element at a time, 0.7 in f32 and 0.4 in f16 and bf16.
template <int width, typename T>
void add_act_grad_of(const T* y, const void* dy_, const void* more_, void* dx_, std::int64_t count,
                     cudaStream_t stream) {
  const auto *const dy = static_cast<const T*>(dy_), *const more = static_cast<const T*>(more_);
  auto* const dx = static_cast<T*>(dx_);
  run_each(count / width, stream, [=] __device__(std::int64_t i) {
    float made[width], gradient[width], second[width] = {};
    load<T>(y, i * width, made);
    load<T>(dy, i * width, gradient);
    if (more != nullptr) load<T>(more, i * width, second);
    for (int k = 0; k < width; ++k) gradient[k] = made[k] > 0.0F ? gradient[k] + second[k] : 0.0F;
    store<T>(dx, i * width, gradient);
  });
}

__device__ float result_of(const GroupStep& step, float a, float b) {
  switch (step.what) {
    case GroupStep::Do::add:
      return a + b;
    case GroupStep::Do::relu:
      return relu_of(a);
    case GroupStep::Do::relu_grad:
      return a > 0.0F ? b : 0.0F;
    case GroupStep::Do::clamp:
      return a < 0.0F ? 0.0F : a > step.first ? step.first : a;
    case GroupStep::Do::clamp_grad:
      return a > 0.0F && a < step.first ? b : 0.0F;
    default:
      return step.first * a + step.second;
  }
}

// Each thread has its own places in shared memory: registers cannot be chosen by a number. What is written to memory
// waits until everything is read, since an output may have the place of an input. The kernel indexes its parameters with
// run-time numbers; __grid_constant__ keeps them from being copied to the stack. 4 bytes read per input and 4 written per
// output, per element. Predicted share of the memory bandwidth: 0.6, because each step waits for its inputs; 0.4 with one
// element at a time.
template <int width, int places>
__global__ void run_steps(const __grid_constant__ GroupSteps group,
                          const __grid_constant__ GroupArrays arrays, std::int64_t count) {
  __shared__ SideBySide<float, width> results[places][kThreads];
  FLEETRUN_EACH(i, count) {
    for (int s = 0; s < group.count; ++s) {
      const GroupStep& step = group.steps[s];
      const auto read = [&](int source) {
        if (source >= kGroupArrays) return results[source - kGroupArrays][threadIdx.x];
        SideBySide<float, width> values;
        load<float>(arrays.in[source], i * width, values.of);
        return values;
      };
      SideBySide<float, width> made = read(step.a);
      const SideBySide<float, width> second = step.b == step.a ? made : read(step.b);
      for (int k = 0; k < width; ++k) made.of[k] = result_of(step, made.of[k], second.of[k]);
      results[step.result][threadIdx.x] = made;
    }
    for (int y = 0; y < group.outputs; ++y)
      store<float>(arrays.out[y], i * width, results[group.kept[y]][threadIdx.x].of);
  }
}

}  // namespace

void add_act(Number type, const void* x, const void* y, void* out, const AddAct& how, std::int64_t count,
             cudaStream_t stream) {
  for_type(type, [&]<typename T>() {
    with_width(count % kWide == 0, [&](auto width) {
      const auto* const first = static_cast<const T*>(x);
      if (how.relu)
        add_act_of<decltype(width)::value, true>(first, y, out, how, count, stream);
      else
        add_act_of<decltype(width)::value, false>(first, y, out, how, count, stream);
    });
  });
}

void add_act_grad(Number type, const void* y, const void* dy, const void* more, void* dx, std::int64_t count,
                  cudaStream_t stream) {
  for_type(type, [&]<typename T>() {
    with_width(count % kWide == 0, [&](auto width) {
      add_act_grad_of<decltype(width)::value>(static_cast<const T*>(y), dy, more, dx, count, stream);
    });
  });
}

void run_group(const GroupSteps& steps, const GroupArrays& arrays, std::int64_t count, cudaStream_t stream) {
  constexpr int kFewPlaces = 8;  // of packs: 32 KiB of shared memory
  if (steps.places <= kFewPlaces && count % kWide == 0)
    start_elements(run_steps<kWide, kFewPlaces>, count / kWide, stream, steps, arrays);
  else
    start_elements(run_steps<1, kMostGroupSteps>, count, stream, steps, arrays);
}

}  // namespace fleetrun::cuda
