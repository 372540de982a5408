#include "launch/serve/merge_answers.h"

#include <string>

#include "launch/cli/flags/rank_set.h"
#include "launch/nodes/places.h"

namespace fleetrun::launch {
namespace {

using Kind = JsonValue::Kind;

// What a node said under this key; null when it said nothing of the kind.
const JsonValue* list_in(const NodeAnswers& answers, int node, const char* key) {
  const auto found = answers.find(node);
  return found == answers.end() ? nullptr : found->second.find(key, Kind::list);
}

std::vector<JsonValue> ranks_on(const Placed& placed, int node, const NodeAnswers& answers) {
  if (const JsonValue* const ranks = list_in(answers, node, "ranks")) return ranks->items;
  std::vector<JsonValue> silent;
  const RankRange range = ranks_of_node(placed, node);
  for (int rank = range.first; rank <= range.last(); ++rank)
    silent.push_back(JsonValue::object({{"rank", rank}, {"state", "no answer"}}));
  return silent;
}

void append(const JsonValue* list, JsonValue& to) {
  if (list != nullptr) to.items.insert(to.items.end(), list->items.begin(), list->items.end());
}

}  // namespace

JsonValue merge_ps(const Placed& placed, const NodeAnswers& answers) {
  JsonValue all = JsonValue::list({});
  for (int node = 0; node < std::ssize(placed.nodes); ++node)
    for (JsonValue rank : ranks_on(placed, node, answers)) {
      rank.add("host", placed.nodes[static_cast<std::size_t>(node)].host);
      all.items.push_back(std::move(rank));
    }
  JsonValue merged = answers.at(0);
  if (JsonMember* const ranks = merged.find("ranks")) ranks->value = std::move(all);
  return merged;
}

JsonValue merge_signal(const Placed& placed, const std::map<int, std::string>& asked,
                       const NodeAnswers& answers) {
  JsonValue sent = JsonValue::list({}), spared = JsonValue::list({}), silent = JsonValue::list({});
  for (const auto& [node, ranks] : asked) {
    append(list_in(answers, node, "ranks"), sent);
    append(list_in(answers, node, "spared"), spared);
    if (list_in(answers, node, "ranks") != nullptr) continue;
    const RankSet wanted = parse_ranks("ranks", ranks);
    const RankRange range = ranks_of_node(placed, node);
    for (int rank = range.first; rank <= range.last(); ++rank)
      if (wanted.contains(rank)) silent.items.emplace_back(rank);
  }
  return JsonValue::object({{"ranks", sent}, {"spared", spared}, {"silent", silent}});
}

}  // namespace fleetrun::launch
