// From what the nodes of a run answered, each for its own ranks, to one answer.
#pragma once
#include <map>

#include "base/json/json_value.h"
#include "launch/nodes/node_messages.h"

namespace fleetrun::launch {

using NodeAnswers = std::map<int, JsonValue>;  // by node; without those that did not answer

// Of "ps": that of the first node, with the ranks of all nodes in order. Each names its host; where its node did not answer, its state says so.
JsonValue merge_ps(const Placed& placed, const NodeAnswers& answers);

// Of "signal": the ranks that were sent it and those that were spared; "silent": the wanted ranks of `asked` nodes that did not answer.
JsonValue merge_signal(const Placed& placed, const std::map<int, std::string>& asked,
                       const NodeAnswers& answers);

}  // namespace fleetrun::launch
