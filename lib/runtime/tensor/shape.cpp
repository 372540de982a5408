#include "runtime/tensor/shape.h"

#include <functional>
#include <numeric>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace fleetrun::runtime {

std::int64_t count_of(const Shape& shape) {
  return std::accumulate(shape.begin(), shape.end(), std::int64_t{1}, std::multiplies<>());
}

std::string describe(const Shape& shape) { return fmt::format("[{}]", fmt::join(shape, ",")); }

}  // namespace fleetrun::runtime
