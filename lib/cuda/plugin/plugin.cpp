// The one function that libfleetrun_cuda.so exports.
#include "runtime/kernels/plugin.h"

#include "cuda/plugin/cuda_device.h"

extern "C" __attribute__((visibility("default"))) const fleetrun::runtime::Plugin* fleetrun_plugin() {
  using namespace fleetrun;
  static const runtime::Plugin plugin = {
      .kernels = cuda::cuda_kernels,
      .make_device = [](const runtime::PluginOptions& options) -> std::unique_ptr<runtime::Device> {
        return std::make_unique<cuda::CudaDevice>(options);
      }};
  return &plugin;
}
