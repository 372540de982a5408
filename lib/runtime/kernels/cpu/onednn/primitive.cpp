#include "runtime/kernels/cpu/onednn/primitive.h"

#include <dnnl.h>

#include <mutex>

#include <fmt/format.h>

#include "base/error/error.h"
#include "runtime/kernels/cpu/onednn/cpu_device.h"
#include "runtime/kernels/cpu/onednn/primitive_scope.h"

namespace fleetrun::runtime::cpu {
namespace {

using Attributes =
    std::unique_ptr<dnnl_primitive_attr,
                    decltype([](dnnl_primitive_attr_t handle) { dnnl_primitive_attr_destroy(handle); })>;

Attributes own_scratch() {
  dnnl_primitive_attr_t attributes = nullptr;
  check(dnnl_primitive_attr_create(&attributes), "making attributes");
  Attributes owned(attributes);
  check(dnnl_primitive_attr_set_scratchpad_mode(attributes, dnnl_scratchpad_mode_user),
        "choosing scratch memory");
  return owned;
}

PrimitiveDesc or_nothing(dnnl_status_t status, dnnl_primitive_desc_t desc) {
  if (status == dnnl_unimplemented || status == dnnl_invalid_arguments) return nullptr;
  check(status, "choosing an implementation");
  return PrimitiveDesc(desc);
}

}  // namespace

void destroy_primitive_desc(dnnl_primitive_desc_t handle) { dnnl_primitive_desc_destroy(handle); }
void destroy_primitive(dnnl_primitive_t handle) { dnnl_primitive_destroy(handle); }
void destroy_memory(dnnl_memory_t handle) { dnnl_memory_destroy(handle); }
void destroy_stream(dnnl_stream_t handle) { dnnl_stream_destroy(handle); }

// One thread at a time: oneDNN 2.6 works out the blocks of matrix units in variables that all threads share
// (openvinotoolkit/openvino#14324), and then now and then finds no implementation but its reference.
PrimitiveDesc describe_primitive(const void* op_desc, dnnl_engine_t engine,
                                 const dnnl_primitive_desc* forward) {
  static std::mutex one_at_a_time;
  const std::lock_guard lock(one_at_a_time);
  const Attributes attributes = own_scratch();
  dnnl_primitive_desc_t desc = nullptr;
  const dnnl_status_t status = dnnl_primitive_desc_create(&desc, op_desc, attributes.get(), engine, forward);
  return or_nothing(status, desc);
}

PrimitiveDesc describe_reorder(const Descriptor& from, const Descriptor& to, dnnl_engine_t engine) {
  const Attributes attributes = own_scratch();
  dnnl_primitive_desc_t desc = nullptr;
  const dnnl_status_t status =
      dnnl_reorder_primitive_desc_create(&desc, &from, engine, &to, engine, attributes.get());
  return or_nothing(status, desc);
}

std::string implementation(const PrimitiveDesc& desc) {
  if (desc == nullptr) return "none";
  const char* text = nullptr;
  check(dnnl_primitive_desc_query(desc.get(), dnnl_query_impl_info_str, 0, &text),
        "naming an implementation");
  return text;
}

bool optimised(const PrimitiveDesc& desc) {
  return desc != nullptr && !implementation(desc).starts_with("ref");
}

const Descriptor& queried(const PrimitiveDesc& desc, dnnl_query_t what) {
  const Descriptor* found = dnnl_primitive_desc_query_md(desc.get(), what, 0);
  if (found == nullptr) throw Error(ErrorKind::internal, "oneDNN does not say a layout that was asked for");
  return *found;
}

PrimitiveKernel::PrimitiveKernel(const OpView& op, CpuDevice& device, const PrimitiveDesc& desc,
                                 const std::vector<PrimitiveArgument>& arguments)
    : name_(op.def().name), implementation_(implementation(desc)) {
  if (desc == nullptr) op.fail("oneDNN has no implementation for these shapes and layouts");
  if (device.refuses(desc))
    throw Error(ErrorKind::internal, fmt::format("op {} would run on oneDNN's reference implementation {}",
                                                 name_, implementation_));
  dnnl_primitive_t primitive = nullptr;
  check(dnnl_primitive_create(&primitive, desc.get()), "making " + name_);
  primitive_.reset(primitive);
  dnnl_stream_t stream = nullptr;
  check(dnnl_stream_create(&stream, device.engine(), dnnl_stream_default_flags), "making a stream");
  stream_.reset(stream);
  for (const PrimitiveArgument& argument : arguments)
    add_slot(argument.tag, argument.value, argument.descriptor, device.engine());
  const Descriptor& scratch = queried(desc, dnnl_query_scratchpad_md);
  scratch_bytes_ = dnnl_memory_desc_get_size(&scratch);
  if (scratch_bytes_ > 0) add_slot(DNNL_ARG_SCRATCHPAD, kNone, scratch, device.engine());
}

void PrimitiveKernel::add_slot(int tag, ValueId value, const Descriptor& descriptor, dnnl_engine_t engine) {
  dnnl_memory_t memory = nullptr;
  check(dnnl_memory_create(&memory, &descriptor, engine, DNNL_MEMORY_NONE), "describing memory of " + name_);
  slots_.push_back({.value = value, .pointer = nullptr, .memory = Memory(memory)});
  arguments_.push_back({tag, memory});
}

void PrimitiveKernel::run(const RunContext& context) {
  const PrimitiveScope recycled;
  for (Slot& slot : slots_) {
    void* const pointer = slot.value == kNone ? context.scratch : context.data[slot.value];
    if (pointer == slot.pointer) continue;
    check(dnnl_memory_set_data_handle_v2(slot.memory.get(), pointer, stream_.get()), "setting memory");
    slot.pointer = pointer;
  }
  const dnnl_status_t status = dnnl_primitive_execute(primitive_.get(), stream_.get(),
                                                      static_cast<int>(arguments_.size()), arguments_.data());
  if (status != dnnl_success) check(status, "running " + name_);
}

}  // namespace fleetrun::runtime::cpu
