#include "runtime/kernels/cpu/onednn/cpu_device.h"

#include <dnnl.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <string_view>

#include <fmt/format.h>

#include "base/error/error.h"
#include "base/system/environment.h"
#include "comm/collective/aligned_memory.h"
#include "runtime/kernels/cpu/onednn/primitive_scope.h"
#include "runtime/kernels/cpu/threads/team.h"

namespace fleetrun::runtime::cpu {
namespace {

bool has(dnnl_cpu_isa_t set) { return (dnnl_get_effective_cpu_isa() & set) == set; }

// As Linux names it on x86; other architectures give no model.
std::string processor() {
  constexpr std::string_view kKey = "model name";
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);)
    if (line.starts_with(kKey) && line.find(": ") != std::string::npos)
      return line.substr(line.find(": ") + 2);
  return "unknown processor";
}

using Stream = std::unique_ptr<dnnl_stream, Destroy<destroy_stream>>;
using Memory = std::unique_ptr<dnnl_memory, Destroy<destroy_memory>>;

Memory memory_at(void* data, const Descriptor& descriptor, dnnl_engine_t engine) {
  dnnl_memory_t memory = nullptr;
  check(dnnl_memory_create(&memory, &descriptor, engine, data), "describing memory");
  return Memory(memory);
}

void reorder_now(const Descriptor& from, void* source, const Descriptor& to, void* target,
                 dnnl_engine_t engine) {
  dnnl_primitive_desc_t desc = nullptr;
  check(dnnl_reorder_primitive_desc_create(&desc, &from, engine, &to, engine, nullptr), "choosing a reorder");
  const PrimitiveDesc owned(desc);
  dnnl_primitive_t primitive = nullptr;
  check(dnnl_primitive_create(&primitive, desc), "making a reorder");
  const std::unique_ptr<dnnl_primitive, Destroy<destroy_primitive>> owned_primitive(primitive);
  dnnl_stream_t stream = nullptr;
  check(dnnl_stream_create(&stream, engine, dnnl_stream_default_flags), "making a stream");
  const Stream owned_stream(stream);
  const Memory in = memory_at(source, from, engine);
  const Memory out = memory_at(target, to, engine);
  const dnnl_exec_arg_t arguments[] = {{DNNL_ARG_FROM, in.get()}, {DNNL_ARG_TO, out.get()}};
  check(dnnl_primitive_execute(primitive, stream, 2, arguments), "running a reorder");
}

// The plain tensor with the dims that the value's layout uses.
Descriptor plain_descriptor(const Value& value) {
  const Descriptor descriptor = descriptor_of(value);
  return row_major(Shape(descriptor.dims, descriptor.dims + descriptor.ndims), value.dtype);
}

std::size_t plain_bytes(const Value& value) {
  return static_cast<std::size_t>(count_of(value.shape)) * size_of(value.dtype);
}

}  // namespace

void destroy_engine(dnnl_engine_t handle) { dnnl_engine_destroy(handle); }

CpuDevice::CpuDevice(const CpuOptions& options)
    : kernels_(cpu_kernels()),
      refuse_reference_(has(dnnl_cpu_isa_avx512_core) &&
                        (options.refuse_reference ||
                         Environment::of_this_process().get_or("FLEETRUN_REFUSE_REF", "") == "1")) {
  dnnl_engine_t engine = nullptr;
  check(dnnl_engine_create(&engine, dnnl_cpu, 0), "making the CPU engine");
  engine_.reset(engine);
}

std::string CpuDevice::version() const {
  const dnnl_version_t* version = dnnl_version();
  return fmt::format("oneDNN {}.{}.{}", version->major, version->minor, version->patch);
}

std::string CpuDevice::hardware() const {
  return fmt::format("{}, instruction sets {:x}", processor(),
                     static_cast<unsigned>(dnnl_get_effective_cpu_isa()));
}

std::unique_ptr<comm::Memory> CpuDevice::allocate(std::size_t bytes) {
  return comm::make_aligned_memory(bytes);
}

void CpuDevice::to_plain(const Value& value, const void* data, void* plain) {
  if (value.layout.plain())
    std::memcpy(plain, data, plain_bytes(value));
  else
    reorder_now(descriptor_of(value), const_cast<void*>(data), plain_descriptor(value), plain, engine());
}

void CpuDevice::from_plain(const Value& value, const void* plain, void* data) {
  if (value.layout.plain())
    std::memcpy(data, plain, plain_bytes(value));
  else
    reorder_now(plain_descriptor(value), const_cast<void*>(plain), descriptor_of(value), data, engine());
}

int CpuDevice::largest_team(int wanted) const { return cpu::largest_team(wanted); }

void CpuDevice::enter_thread(int team) {
  set_team(team);
  const PrimitiveScope scope;  // what a thread's first one allocates is allocated here, not in some step
}

std::vector<DType> CpuDevice::narrow_types() const {
  return has(dnnl_cpu_isa_avx512_core_bf16) ? std::vector{DType::bf16} : std::vector<DType>();
}

bool CpuDevice::refuses(const PrimitiveDesc& desc) const { return refuse_reference_ && !optimised(desc); }

CpuDevice& as_cpu(Device& device) {
  if (auto* cpu = dynamic_cast<CpuDevice*>(&device)) return *cpu;
  throw Error(ErrorKind::internal, "a CPU kernel was asked for device " + device.name());
}

}  // namespace fleetrun::runtime::cpu

namespace fleetrun::runtime {

std::unique_ptr<Device> make_cpu_device(const CpuOptions& options) {
  return std::make_unique<cpu::CpuDevice>(options);
}

}  // namespace fleetrun::runtime
