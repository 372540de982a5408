// Batch normalisation by our own kernels: of any type and layout, and fused with what follows it.
#pragma once
#include "cuda/plugin/batch_norm.h"
#include "cuda/plugin/simple_kernel.h"

namespace fleetrun::cuda {

// The images that the op normalises.
NormImages norm_images_of(const OpView& op);

std::unique_ptr<Kernel> make_own_batch_norm(const OpView& op, runtime::Device& device);
std::unique_ptr<Kernel> make_own_batch_norm_grad(const OpView& op, runtime::Device& device);

}  // namespace fleetrun::cuda
