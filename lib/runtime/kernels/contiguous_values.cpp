#include "runtime/kernels/contiguous_values.h"

#include <fmt/format.h>

#include "base/error/error.h"
#include "runtime/kernels/device.h"

namespace fleetrun::runtime {

ContiguousValues::ContiguousValues(const Program& program, std::span<const ValueId> ids)
    : dtype_(program.value(ids.front()).dtype) {
  for (const ValueId id : ids) parts_.push_back({id, program.value(id).bytes(), program.value(id).name});
}

BufferView ContiguousValues::view(const RunContext& context) const {
  auto* const first = static_cast<std::byte*>(context.data[parts_.front().id]);
  std::byte* end = first;
  for (const Part& part : parts_) {
    auto* const begin = static_cast<std::byte*>(context.data[part.id]);
    if (begin < end || begin >= end + kMostGradientAlignment)
      throw Error(ErrorKind::internal, fmt::format("{} does not lie after {}, with which it is to travel",
                                                   part.name, parts_.front().name));
    end = begin + part.bytes;
  }
  return {first, static_cast<std::size_t>(end - first) / size_of(dtype_), dtype_};
}

}  // namespace fleetrun::runtime
