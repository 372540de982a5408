// Which rank owns which parameter: nobody owns a part of one.
#pragma once
#include <cstdint>
#include <vector>

#include "runtime/graph/program.h"

namespace fleetrun::runtime {

// In the order in which the backward part makes their gradients.
std::vector<ValueId> parameters_by_gradient(const Program& program);

std::vector<std::int64_t> elements_of(const Program& program, const std::vector<ValueId>& values);

// For each of the parameters with so many elements: the rank that owns the fewest elements so far.
std::vector<int> choose_owners(const std::vector<std::int64_t>& elements, int ranks);

}  // namespace fleetrun::runtime
