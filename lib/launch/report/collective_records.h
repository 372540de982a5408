// Where the ranks are in their collectives, from the records after their progress pages, and which rank differs.
#pragma once
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "base/json/json_value.h"
#include "base/run/flight_record.h"
#include "base/run/progress_page.h"

namespace fleetrun::launch {

struct RankCollectives {
  int rank = 0;
  std::vector<FlightHistory> communicators;
};

// All records at one moment.
struct CollectiveRecords {
  std::vector<RankCollectives> ranks;
  std::int64_t now_ns = 0;  // CLOCK_MONOTONIC, as in the records
  std::chrono::system_clock::time_point now;

  bool empty() const;  // no rank has begun a collective
};
CollectiveRecords read_collectives(const std::vector<ProgressPagePtr>& pages, int first_rank = 0);

// A rank of a communicator. The history is one of the records.
struct Member {
  int rank = 0;
  const FlightHistory* history = nullptr;

  bool inside() const { return history->ended < history->begun; }
};

// A communicator as all of its ranks see it.
struct Comparison {
  std::string communicator;
  std::vector<Member> members;
  bool settled = true;   // all ranks have finished the same collectives
  std::vector<int> odd;  // who the others wait for, or who calls something else; none: it cannot be told
  // "rank 1 has not begun collective 53, all_reduce of 1000 f32 (sum); rank 0 waits in it for 3.2 s"
  std::string words;
};
std::vector<Comparison> compare_collectives(const CollectiveRecords& records);

// A line for each communicator whose ranks are not all at the same place or wait inside of one.
std::vector<std::string> describe_collectives(const CollectiveRecords& records);

// Of one rank: "in collective 53, all_reduce of 1000 f32 (sum), for 3.2 s", "after collective 52"; "" without any.
std::string describe_place(const RankCollectives& rank, std::int64_t now_ns);

// The comparison with the latest few collectives of each rank, and everything that is known of one rank.
JsonValue comparisons_json(const CollectiveRecords& records);
JsonValue history_json(const CollectiveRecords& records, const RankCollectives& rank);

}  // namespace fleetrun::launch
