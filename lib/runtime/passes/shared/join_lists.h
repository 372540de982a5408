// Several ops of one type become one op with longer lists.
#pragma once
#include <vector>

#include "runtime/graph/op_def.h"

namespace fleetrun::runtime {

// Whether the ops differ only in the members of their lists, and in what they wait for.
bool differ_in_lists_alone(const OpView& a, const OpView& b);

// One op for all, which differ in their lists alone. Each list has the members of the first op, then those of the second, and so on. The op waits
// for all that they wait for.
Op join_lists(const std::vector<OpView>& ops);

}  // namespace fleetrun::runtime
