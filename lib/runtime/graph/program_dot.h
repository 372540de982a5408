// A program as a picture in Graphviz's language: ops are boxes in the colour of their role, the values that
// flow between them are edges with type, shape and layout, mere order is dashed; feeds, parameters, states and
// fetches are ellipses.
//   dot -Tsvg train.dot -o train.svg
#pragma once
#include <string>

#include "runtime/graph/program.h"

namespace fleetrun::runtime {

// An op that reads what another one updates in place hangs on the last writer before it.
std::string program_dot(const Program& program);

}  // namespace fleetrun::runtime
