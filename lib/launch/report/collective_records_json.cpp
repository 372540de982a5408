#include <algorithm>

#include "launch/report/collective_records.h"
#include "launch/report/utc_time.h"

namespace fleetrun::launch {
namespace {

constexpr std::size_t kLatest = 4;  // of each rank in the report; all are in a file of the rank

JsonValue entry_json(const FlightEntry& entry, const CollectiveRecords& records) {
  const auto wall = [&](std::int64_t ns) {
    return utc_time(records.now + std::chrono::duration_cast<std::chrono::system_clock::duration>(
                                      std::chrono::nanoseconds(ns - records.now_ns)));
  };
  JsonValue json = JsonValue::object({{"number", entry.number}, {"op", entry.name}});
  if (!entry.reduction.empty()) json.add("reduction", entry.reduction);
  if (entry.root != CollectiveNote::kNoRoot) json.add("root", entry.root);
  json.add("dtype", describe(entry.dtype));
  json.add("count", entry.count);
  json.add("bytes", entry.count * size_of(entry.dtype));
  json.add("start", wall(entry.start_ns));
  json.add("seconds",
           entry.end_ns == 0 ? JsonValue() : static_cast<double>(entry.end_ns - entry.start_ns) / 1e9);
  return json;
}

JsonValue entries_json(const FlightHistory& history, std::size_t most, const CollectiveRecords& records) {
  JsonValue json = JsonValue::list({});
  const std::size_t skipped = history.entries.size() - std::min(most, history.entries.size());
  for (std::size_t i = skipped; i < history.entries.size(); ++i)
    json.items.push_back(entry_json(history.entries[i], records));
  return json;
}

}  // namespace

JsonValue comparisons_json(const CollectiveRecords& records) {
  JsonValue json = JsonValue::list({});
  for (const Comparison& found : compare_collectives(records)) {
    JsonValue ranks = JsonValue::list({});
    for (const Member& member : found.members)
      ranks.items.push_back(JsonValue::object({{"rank", member.rank},
                                               {"begun", member.history->begun},
                                               {"finished", member.history->ended},
                                               {"latest", entries_json(*member.history, kLatest, records)}}));
    json.items.push_back(JsonValue::object({{"communicator", found.communicator},
                                            {"verdict", found.words},
                                            {"odd_ranks", found.odd},
                                            {"ranks", ranks}}));
  }
  return json;
}

JsonValue history_json(const CollectiveRecords& records, const RankCollectives& rank) {
  JsonValue json = JsonValue::list({});
  for (const FlightHistory& history : rank.communicators)
    json.items.push_back(
        JsonValue::object({{"communicator", history.communicator},
                           {"begun", history.begun},
                           {"finished", history.ended},
                           {"collectives", entries_json(history, FlightRecord::kEntries, records)}}));
  return json;
}

}  // namespace fleetrun::launch
