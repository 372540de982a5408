// Merges the answers of the nodes of a run, each for its own ranks, into one answer.
#pragma once
#include <map>

#include "base/json/json_value.h"
#include "launch/nodes/node_messages.h"

namespace fleetrun::launch {

using NodeAnswers = std::map<int, JsonValue>;  // by node; nodes that did not answer are missing

// For "ps": the first node's answer, with the ranks of all nodes in order. Each rank has its host. If a node did
// not answer, its ranks have the state "no answer".
JsonValue merge_ps(const Placed& placed, const NodeAnswers& answers);

// For "signal": "ranks" got the signal, "spared" did not because it would end them, "silent" are on nodes that did not
// answer. `asked`: the wanted ranks of each node.
JsonValue merge_signal(const Placed& placed, const std::map<int, std::string>& asked,
                       const NodeAnswers& answers);

}  // namespace fleetrun::launch
