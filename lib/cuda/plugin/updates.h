// Kernels over lists of tensors as plain functions, as in launch.h: the optimizers, limits of gradients, casts, loss scaling. The
// arrays of each TensorArrays are named where its function is declared.
#pragma once
#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>

#include "cuda/plugin/launch.h"
#include "cuda/plugin/multi_tensor.h"

namespace fleetrun::cuda {

// updates.cu
void sgd(TensorList<2> tensors /* param, grad */, const float* rate, float decay, cudaStream_t stream);

struct Momentum {
  float mu, decay;
  bool nesterov;
};
void momentum(TensorList<3> tensors /* param, velocity, grad */, const float* rate, const Momentum& settings,
              cudaStream_t stream);

struct Adam {
  float beta1, beta2;
  float rest1, rest2;  // 1 - beta1, 1 - beta2
  double epsilon;
  float decay;
  bool decays_weights;  // AdamW, Adam adds to the gradient
};
void adam(TensorList<6> tensors /* param, moment1, moment2, grad, beta1_pow, beta2_pow */, const float* rate,
          const Adam& settings, cudaStream_t stream);

void average_weights(TensorList<2> tensors /* average, param */, float* decay_pow, float decay,
                     cudaStream_t stream);

// localsgd: the message is how far a parameter is from its snapshot, and then the sum of that over the ranks.
void differences(TensorList<3> tensors /* param, snapshot, message */, cudaStream_t stream);
void take_means(TensorList<3> tensors /* param, snapshot, message */, float share, cudaStream_t stream);

// scaled_updates.cu: each parameter's step depends on norms. `scratch` is of norm_scratch_bytes.
struct Lars {
  double coeff, decay, epsilon;
  float mu;
};
void lars(TensorList<3> tensors /* param, velocity, grad */, const float* rate, const Lars& settings,
          void* scratch, cudaStream_t stream);

struct Lamb {
  float beta1, beta2;
  float rest1, rest2;  // 1 - beta1, 1 - beta2
  float epsilon, decay;
};
void lamb(TensorList<6> tensors /* param, moment1, moment2, grad, beta1_pow, beta2_pow */, const float* rate,
          const Lamb& settings, void* scratch, cudaStream_t stream);

// clip.cu
// Of an op with so many tensors and elements in all.
std::size_t norm_scratch_bytes(std::size_t tensors, std::int64_t elements);

void clip_by_value(TensorList<1> tensors, float limit, cudaStream_t stream);
void clip_by_norm(TensorList<1> tensors, double limit, void* scratch, cudaStream_t stream);
void gradient_norms(TensorList<1> tensors, float* norms, void* scratch, cudaStream_t stream);

struct GlobalNorm {
  const float* norms;
  std::int64_t count;
  double limit;
};
// `scratch` has one float.
void clip_by_global_norm(TensorList<1> tensors, const GlobalNorm& norm, float* scratch, cudaStream_t stream);

// casts.cu
void cast(TensorList<2> tensors /* x, y */, Number from, Number to, cudaStream_t stream);

// loss_scaling.cu
void scale_loss(const float* x, const float* scale, float* y, cudaStream_t stream);
void check_finite_and_unscale(TensorList<2> tensors /* x, out */, Number of_x, const float* scale,
                              float* found, cudaStream_t stream);

struct LossScaling {
  float incr_every, decr_every, incr_ratio, decr_ratio;
};
struct LossScale {
  const float* found;
  float *scale, *good, *bad;
};
void update_loss_scaling(const LossScale& state, const LossScaling& settings, cudaStream_t stream);
void zero_on_overflow(TensorList<1> tensors, const float* found, cudaStream_t stream);

struct Merge {
  float scale;
  bool hands_over;  // in this step
};
void merge_gradient(TensorList<3> tensors /* merged, grad, out */, Number of_grad, const Merge& merge,
                    cudaStream_t stream);

}  // namespace fleetrun::cuda
