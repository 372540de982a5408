#include <algorithm>

#include <nlohmann/json.hpp>

#include "launch/report/collective_records.h"
#include "launch/report/utc_time.h"

namespace fleetrun::launch {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::size_t kLatest = 4;  // of each rank in the report; all are in a file of the rank

Json entry_json(const FlightEntry& entry, const CollectiveRecords& records) {
  const auto wall = [&](std::int64_t ns) {
    return utc_time(records.now + std::chrono::duration_cast<std::chrono::system_clock::duration>(
                                      std::chrono::nanoseconds(ns - records.now_ns)));
  };
  Json json = {{"number", entry.number}, {"op", entry.name}};
  if (!entry.reduction.empty()) json["reduction"] = entry.reduction;
  if (entry.root != CollectiveNote::kNoRoot) json["root"] = entry.root;
  json["dtype"] = describe(entry.dtype);
  json["count"] = entry.count;
  json["bytes"] = entry.count * size_of(entry.dtype);
  json["start"] = wall(entry.start_ns);
  json["seconds"] =
      entry.end_ns == 0 ? Json() : Json(static_cast<double>(entry.end_ns - entry.start_ns) / 1e9);
  return json;
}

Json entries_json(const FlightHistory& history, std::size_t most, const CollectiveRecords& records) {
  Json json = Json::array();
  const std::size_t skipped = history.entries.size() - std::min(most, history.entries.size());
  for (std::size_t i = skipped; i < history.entries.size(); ++i)
    json.push_back(entry_json(history.entries[i], records));
  return json;
}

std::string dump(const Json& json) { return json.dump(2, ' ', false, Json::error_handler_t::replace); }

}  // namespace

std::string comparisons_json(const CollectiveRecords& records) {
  Json json = Json::array();
  for (const Comparison& found : compare_collectives(records)) {
    Json ranks = Json::array();
    for (const Member& member : found.members)
      ranks.push_back({{"rank", member.rank},
                       {"begun", member.history->begun},
                       {"finished", member.history->ended},
                       {"latest", entries_json(*member.history, kLatest, records)}});
    json.push_back({{"communicator", found.communicator},
                    {"verdict", found.words},
                    {"odd_ranks", found.odd},
                    {"ranks", std::move(ranks)}});
  }
  return dump(json);
}

std::string history_json(const CollectiveRecords& records, const RankCollectives& rank) {
  Json json = Json::array();
  for (const FlightHistory& history : rank.communicators)
    json.push_back({{"communicator", history.communicator},
                    {"begun", history.begun},
                    {"finished", history.ended},
                    {"collectives", entries_json(history, FlightRecord::kEntries, records)}});
  return dump(json) + "\n";
}

}  // namespace fleetrun::launch
