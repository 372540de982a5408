// The change of the type of elements, for all tensors of an op at once.
#include "cuda/plugin/multi_tensor.cuh"
#include "cuda/plugin/number.cuh"
#include "cuda/plugin/updates.h"

namespace fleetrun::cuda {
namespace {

// The bytes of a From read and those of a To written per element. Predicted share of the memory bandwidth: 0.83.
template <typename From, typename To>
struct CastBody {
  static constexpr int kArrays = 2;
  struct Step {};

  __device__ Step step(const Chunk<2>&) const { return {}; }
  static __device__ bool is_idle(const Step&) { return false; }

  template <int n>
  __device__ void run(void* const* data, std::int64_t at, const Step&) const {
    float values[n];
    load<From>(data[0], at, values);
    store<To>(data[1], at, values);
  }
};

}  // namespace

void cast(TensorList<2> tensors, Number from, Number to, cudaStream_t stream) {
  for_type(from, [&]<typename From>() {
    for_type(to, [&]<typename To>() { start_update(tensors, CastBody<From, To>(), stream); });
  });
}

}  // namespace fleetrun::cuda
