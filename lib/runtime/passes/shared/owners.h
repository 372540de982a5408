// Decides which rank owns which parameter. No rank owns a part of a parameter.
#pragma once
#include <cstdint>
#include <vector>

#include "runtime/graph/program.h"

namespace fleetrun::runtime {

// The parameters in the order in which the backward part makes their gradients.
std::vector<ValueId> parameters_by_gradient(const Program& program);

std::vector<std::int64_t> elements_of(const Program& program, const std::vector<ValueId>& values);

// Gives each parameter to the rank that owns the fewest elements so far. `elements` has the size of each parameter.
std::vector<int> choose_owners(const std::vector<std::int64_t>& elements, int ranks);

// Returns the rank that gets the most elements from choose_owners().
int owner_of_most(const std::vector<std::int64_t>& elements, int ranks);

}  // namespace fleetrun::runtime
