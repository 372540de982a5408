// One oneDNN primitive, made once and run many times without allocating: memory objects are made with it
// and only their pointers are set; scratch memory is the caller's.
#pragma once
#include <dnnl_types.h>

#include <memory>
#include <string>
#include <vector>

#include "runtime/kernels/cpu/onednn/descriptors.h"
#include "runtime/kernels/kernel.h"

namespace fleetrun::runtime::cpu {

class CpuDevice;

template <auto destroy>
struct Destroy {
  template <typename Handle>
  void operator()(Handle* handle) const {
    destroy(handle);
  }
};
void destroy_primitive_desc(dnnl_primitive_desc_t handle);
void destroy_primitive(dnnl_primitive_t handle);
void destroy_memory(dnnl_memory_t handle);
void destroy_stream(dnnl_stream_t handle);

// What oneDNN would run for a problem: empty when it has nothing for these layouts.
using PrimitiveDesc = std::unique_ptr<dnnl_primitive_desc, Destroy<destroy_primitive_desc>>;

PrimitiveDesc describe_primitive(const void* op_desc, dnnl_engine_t engine,
                                 const dnnl_primitive_desc* forward = nullptr);
PrimitiveDesc describe_reorder(const Descriptor& from, const Descriptor& to, dnnl_engine_t engine);

std::string implementation(const PrimitiveDesc& desc);  // "jit:avx512_core"
bool optimised(const PrimitiveDesc& desc);              // there, and not a reference implementation
const Descriptor& queried(const PrimitiveDesc& desc, dnnl_query_t what);  // dnnl_query_src_md, ...

// How x, w and y of a convolution or an inner product lie; with their gradients in their places in the backward directions.
struct Way {
  Descriptor x, w, y;
};

// One of several ways to lay a problem out. The last is oneDNN's favourite, the ones before are cheaper for
// the neighbours: the first of them that the favourite's implementation can work with is taken. Without an
// optimised favourite it is the first way that has an optimised implementation, else the first that has any.
// Empty when none has. `describe` gives the PrimitiveDesc of a way.
template <typename Describe>
PrimitiveDesc best_way(const std::vector<Way>& ways, Describe&& describe) {
  PrimitiveDesc favourite = describe(ways.back());
  PrimitiveDesc fallback;
  for (const Way& way : ways) {
    PrimitiveDesc desc = describe(way);
    if (optimised(desc) && (!optimised(favourite) || implementation(desc) == implementation(favourite)))
      return desc;
    if (fallback == nullptr) fallback = std::move(desc);
  }
  return optimised(favourite) ? std::move(favourite) : std::move(fallback);
}

struct PrimitiveArgument {
  int tag;  // DNNL_ARG_SRC, ...
  ValueId value;
  Descriptor descriptor;
};

class PrimitiveKernel : public Kernel {
 public:
  // Throws Error(internal) when there is no implementation, or only a refused one.
  PrimitiveKernel(const OpView& op, CpuDevice& device, const PrimitiveDesc& desc,
                  const std::vector<PrimitiveArgument>& arguments);

  void run(const RunContext& context) override;
  std::size_t scratch_bytes() const override { return scratch_bytes_; }
  std::string describe() const override { return implementation_; }

 private:
  using Memory = std::unique_ptr<dnnl_memory, Destroy<destroy_memory>>;
  struct Slot {
    ValueId value;  // kNone: scratch
    void* pointer;  // what the memory object has now
    Memory memory;
  };
  void add_slot(int tag, ValueId value, const Descriptor& descriptor, dnnl_engine_t engine);

  std::string name_;
  std::string implementation_;
  std::size_t scratch_bytes_ = 0;
  std::unique_ptr<dnnl_stream, Destroy<destroy_stream>> stream_;
  std::unique_ptr<dnnl_primitive, Destroy<destroy_primitive>> primitive_;
  std::vector<Slot> slots_;
  std::vector<dnnl_exec_arg_t> arguments_;  // one per slot
};

}  // namespace fleetrun::runtime::cpu
