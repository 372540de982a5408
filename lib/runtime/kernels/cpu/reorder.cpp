#include <dnnl.h>

#include "runtime/kernels/cpu/onednn/cpu_device.h"

namespace fleetrun::runtime::cpu {
namespace {

Shape dims_of_descriptor(const Descriptor& descriptor) {
  return {descriptor.dims, descriptor.dims + descriptor.ndims};
}

// The layouts are those that the values have: whoever put the reorder in has set them.
LayoutChoice as_they_are(const LayoutQuery& query, Device&) {
  return {{query.op.input("x").layout}, {query.op.output("y").layout}};
}

std::unique_ptr<Kernel> make_reorder(const OpView& op, Device& device) {
  CpuDevice& cpu = as_cpu(device);
  const Value& x = op.input("x");
  const Value& y = op.output("y");
  const Value& blocked = x.layout.plain() ? y : x;  // its dims, in case it is a view of another rank
  const Shape view = dims_of_descriptor(descriptor_of(blocked));
  const Descriptor from = descriptor_of(x, view);
  const Descriptor to = descriptor_of(y, view);
  return std::make_unique<PrimitiveKernel>(
      op, cpu, describe_reorder(from, to, cpu.engine()),
      std::vector<PrimitiveArgument>{{DNNL_ARG_FROM, op.input_id("x"), from},
                                     {DNNL_ARG_TO, op.output_id("y"), to}});
}

}  // namespace

KernelDef reorder_kernel() { return {.choose_layouts = as_they_are, .make = make_reorder}; }

}  // namespace fleetrun::runtime::cpu
