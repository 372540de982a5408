// The CPU as a device: oneDNN's engine, aligned host memory, OpenMP teams.
#pragma once
#include <dnnl_types.h>

#include <memory>

#include "runtime/kernels/cpu/onednn/primitive.h"
#include "runtime/kernels/device.h"

namespace fleetrun::runtime::cpu {

void destroy_engine(dnnl_engine_t handle);

class CpuDevice : public Device {
 public:
  explicit CpuDevice(const CpuOptions& options);

  std::string name() const override { return "CPU"; }
  std::string version() const override;
  std::string hardware() const override;
  const KernelTable& kernels() const override { return kernels_; }
  std::unique_ptr<comm::Memory> allocate(std::size_t bytes) override;
  void to_plain(const Value& value, const void* data, void* plain) override;
  void from_plain(const Value& value, const void* plain, void* data) override;
  int largest_team(int wanted) const override;
  void enter_thread(int team) override;
  std::vector<DType> narrow_types() const override;  // bf16 where the processor multiplies in it

  dnnl_engine_t engine() const { return engine_.get(); }
  bool refuses(const PrimitiveDesc& desc) const;  // a reference implementation where none is wanted

 private:
  KernelTable kernels_;
  bool refuse_reference_;
  std::unique_ptr<dnnl_engine, Destroy<destroy_engine>> engine_;
};

// The device that a kernel of this folder is made for.
CpuDevice& as_cpu(Device& device);

KernelTable cpu_kernels();  // cpu_kernels.cpp: one line per op

}  // namespace fleetrun::runtime::cpu
