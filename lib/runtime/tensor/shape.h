// Sizes of a tensor, outermost first: images are [N,C,H,W], weights of a convolution [out,in,kh,kw].
#pragma once
#include <cstdint>
#include <string>
#include <vector>

namespace fleetrun::runtime {

using Shape = std::vector<std::int64_t>;

std::int64_t count_of(const Shape& shape);  // elements; 1 for a scalar
std::string describe(const Shape& shape);   // "[32,3,224,224]"

}  // namespace fleetrun::runtime
