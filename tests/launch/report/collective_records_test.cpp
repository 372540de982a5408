#include "launch/report/collective_records.h"

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

namespace fleetrun::launch::collective_records_test {
namespace {

constexpr std::int64_t kSecond = 1'000'000'000;

FlightEntry sum(std::uint64_t number, bool done = true, std::uint64_t count = 1000) {
  const std::int64_t start = static_cast<std::int64_t>(number) * kSecond;
  return {.number = number,
          .name = "all_reduce",
          .reduction = "sum",
          .count = count,
          .start_ns = start,
          .end_ns = done ? start + kSecond / 2 : 0};
}

FlightEntry share(std::uint64_t number) {
  return {.number = number, .name = "broadcast", .reduction = "", .count = 10, .root = 0, .start_ns = 1};
}

FlightHistory history(std::vector<FlightEntry> entries, const std::string& communicator = "world") {
  FlightHistory made = {.communicator = communicator, .entries = std::move(entries)};
  for (const FlightEntry& entry : made.entries) {
    made.begun = entry.number;
    if (entry.end_ns != 0) made.ended = entry.number;
  }
  return made;
}

CollectiveRecords records(const std::vector<FlightHistory>& by_rank, std::int64_t now) {
  CollectiveRecords made;
  made.now_ns = now;
  made.now = std::chrono::system_clock::time_point(std::chrono::milliseconds(1611067852007));
  for (std::size_t rank = 0; rank < by_rank.size(); ++rank)
    made.ranks.push_back({static_cast<int>(rank), {by_rank[rank]}});
  return made;
}

Comparison only(const CollectiveRecords& of) {
  const auto all = compare_collectives(of);
  REQUIRE(all.size() == 1);
  return all.front();
}

TEST_CASE("a rank that has not begun what the others wait in is named, with the others' state") {
  const auto found = only(
      records({history({sum(52), sum(53, false)}), history({sum(52)}), history({sum(52), sum(53, false)})},
              56 * kSecond));
  CHECK(found.odd == std::vector{1});
  CHECK_FALSE(found.settled);
  CHECK(found.words ==
        "rank 1 has not begun collective 53, all_reduce of 1000 f32 (sum); ranks 0, 2 wait in it for 3.0 s");
}

TEST_CASE("a rank that is far behind, or has begun nothing, is named with where the others are") {
  auto found = only(records({history({sum(7), sum(8), sum(9, false)}), history({sum(7)})}, 10 * kSecond));
  CHECK(found.words ==
        "rank 1 has not begun collective 8, all_reduce of 1000 f32 (sum); rank 0 is in collective 9, "
        "all_reduce of 1000 f32 (sum), for 1.0 s");
  found = only(records({history({}), history({sum(1, false)}), history({})}, kSecond));
  CHECK(found.odd == std::vector{0, 2});
  CHECK(found.words ==
        "ranks 0, 2 have not begun collective 1, all_reduce of 1000 f32 (sum); rank 1 waits in it for 0.0 s");
}

TEST_CASE("a rank that is still inside of what the others have finished is named") {
  const auto found =
      only(records({history({sum(4)}), history({sum(4, false)}), history({sum(4)})}, 6 * kSecond));
  CHECK(found.odd == std::vector{1});
  CHECK(
      found.words ==
      "rank 1 is still in collective 4, all_reduce of 1000 f32 (sum), for 2.0 s; ranks 0, 2 have finished collective 4");
}

TEST_CASE("ranks that wait in the same collective have no odd one, and those behind it nothing to say") {
  const auto waiting = records({history({sum(4, false)}), history({sum(4, false)})}, 6 * kSecond);
  CHECK(only(waiting).odd.empty());
  CHECK(describe_collectives(waiting) ==
        std::vector<std::string>{"ranks 0, 1 are in collective 4, all_reduce of 1000 f32 (sum), for 2.0 s"});
  const auto done = records({history({sum(4)}), history({sum(4)})}, 6 * kSecond);
  CHECK(only(done).settled);
  CHECK(describe_collectives(done).empty());
  CHECK(describe_collectives({}).empty());
}

TEST_CASE("a rank that calls something else is named where most agree, and both are named where two differ") {
  auto found = only(records(
      {history({sum(1), sum(2, false)}), history({sum(1), share(2)}), history({sum(1), sum(2, false)})},
      3 * kSecond));
  CHECK(found.odd == std::vector{1});
  CHECK(
      found.words ==
      "collective 2 is all_reduce of 1000 f32 (sum) on ranks 0, 2, but broadcast of 10 f32 from rank 0 on rank 1");
  found = only(records({history({sum(2, false)}), history({sum(2, false, 999)})}, 3 * kSecond));
  CHECK(found.odd.empty());
  CHECK(found.words ==
        "collective 2 is all_reduce of 1000 f32 (sum) on rank 0, but all_reduce of 999 f32 (sum) on rank 1");
}

TEST_CASE("communicators are compared each for itself, among the ranks that have it") {
  CollectiveRecords all;
  all.now_ns = 5 * kSecond;
  all.ranks = {{0, {history({sum(4)}, "0"), history({sum(3, false)}, "inner of 0, 1")}},
               {1, {history({sum(4)}, "0"), history({}, "inner of 0, 1")}},
               {2, {history({sum(4)}, "0"), history({sum(3)}, "inner of 2, 3")}}};
  CHECK(
      describe_collectives(all) ==
      std::vector<std::string>{
          "inner of 0, 1: rank 1 has not begun collective 1; rank 0 is in collective 3, all_reduce of 1000 f32 (sum), for 2.0 s"});
  CHECK(describe_place(all.ranks[0], all.now_ns) ==
        "in collective 3 of inner of 0, 1, all_reduce of 1000 f32 (sum), for 2.0 s");
  CHECK(describe_place(all.ranks[1], all.now_ns) == "after collective 4");
  CHECK(describe_place({}, 0).empty());
}

TEST_CASE("the report has the verdict and the latest of each rank, the rank's own file all of them") {
  std::vector<FlightEntry> many;
  for (std::uint64_t number = 1; number <= 9; ++number) many.push_back(sum(number));
  many.push_back(sum(10, false));
  const auto all = records({history(many), history({sum(9)})}, 12 * kSecond);
  const auto json = nlohmann::json::parse(to_json_tall(comparisons_json(all)));
  CHECK(json[0]["communicator"] == "world");
  CHECK(json[0]["odd_ranks"] == nlohmann::json{1});
  CHECK(json[0]["ranks"][0]["begun"] == 10);
  CHECK(json[0]["ranks"][0]["finished"] == 9);
  CHECK(json[0]["ranks"][0]["latest"].size() == 4);
  const auto last = json[0]["ranks"][0]["latest"][3];
  CHECK(last["op"] == "all_reduce");
  CHECK(last["dtype"] == "f32");
  CHECK(last["bytes"] == 4000);
  CHECK(last["start"] == "2021-01-19T14:50:50.007Z");
  CHECK(last["seconds"].is_null());
  const auto own = nlohmann::json::parse(to_json_tall(history_json(all, all.ranks[0])));
  CHECK(own[0]["collectives"].size() == 10);
  CHECK(own[0]["collectives"][0]["seconds"] == doctest::Approx(0.5));
}

}  // namespace
}  // namespace fleetrun::launch::collective_records_test
