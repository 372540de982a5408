#include "launch/report/describe_roll_call.h"

#include <doctest/doctest.h>

namespace fleetrun::launch::roll_call_test {
namespace {

std::vector<RankFacts> waiting_ranks(int count) {
  std::vector<RankFacts> ranks;
  ranks.reserve(static_cast<std::size_t>(count));
  for (int i = 0; i < count; ++i)
    ranks.push_back({.rank = i, .pid = 100 + i, .running = true, .state = 'S', .wait = "do_epoll_wait"});
  return ranks;
}

TEST_CASE("each rank has a line with what it does, and the odd one is named") {
  auto ranks = waiting_ranks(2);
  ranks[0].silent_for = 61.4;
  ranks[0].worked = 12.34;
  ranks[0].last_line = "epoch 3";
  ranks[1].state = 'T';
  ranks[1].wait = "";
  CHECK(describe_roll_call(ranks) ==
        std::vector<std::string>{
            "rank 0  pid 100  waiting in do_epoll_wait  worked 12.3 s  silent for 61 s  last line: epoch 3",
            "rank 1  pid 101  stopped (T)  worked 0.0 s  silent for 0 s",
            "rank 1 is stopped, the others are not"});
}

TEST_CASE("ranks that are alike have no odd one among them") {
  CHECK(describe_odd_rank(waiting_ranks(3)).empty());
}

TEST_CASE("a rank that is behind in steps is odd, and what the collectives tell follows") {
  auto ranks = waiting_ranks(3);
  for (auto& rank : ranks) rank.step = {.phase = "training", .step = 7, .place = "after collective 40"};
  ranks[2].step->step = 6;
  CHECK(describe_odd_rank(ranks) == "rank 2 is 1 steps behind");
  ranks[2].state = 'T';
  CollectiveRecords collectives;
  for (int rank = 0; rank < 3; ++rank)
    collectives.ranks.push_back(
        {rank, {{.communicator = "world", .begun = rank == 2 ? 39U : 40U, .ended = 39, .entries = {}}}});
  const auto lines = describe_roll_call(ranks, collectives);
  REQUIRE(lines.size() == 5);
  CHECK(
      lines[0] ==
      "rank 0  pid 100  waiting in do_epoll_wait  worked 0.0 s  silent for 0 s  training, step 7, after collective 40");
  CHECK(lines[3] == "rank 2 is stopped, the others are not");
  CHECK(lines[4] == "rank 2 has not begun collective 40; ranks 0, 1 wait in it");
}

TEST_CASE("a rank whose data does not come is odd, though that puts it behind") {
  auto ranks = waiting_ranks(2);
  for (auto& rank : ranks) rank.step = {.phase = "training", .step = 7};
  ranks[1].step = {.phase = "waiting for data", .step = 6};
  CHECK(describe_odd_rank(ranks) == "rank 1 is waiting for data, the others are not");
}

TEST_CASE("a rank that has ended, or one that computes while the others wait, is odd") {
  auto ranks = waiting_ranks(3);
  ranks[0].running = false;
  ranks[0].ended = "finished with 0";
  CHECK(describe_odd_rank(ranks) == "rank 0 is no longer running, but the others are");
  CHECK(describe_roll_call(ranks).front() == "rank 0  finished with 0");
  ranks = waiting_ranks(3);
  ranks[1].state = 'R';
  CHECK(describe_odd_rank(ranks) == "rank 1 is computing, the others are not");
}

TEST_CASE("a rank that waits somewhere else than most is odd") {
  auto ranks = waiting_ranks(4);
  ranks[3].wait = "pipe_read";
  CHECK(describe_odd_rank(ranks) == "rank 3 is in pipe_read, the others in do_epoll_wait");
  ranks[2].wait = "pipe_read";
  CHECK(describe_odd_rank(ranks).empty());
}

}  // namespace
}  // namespace fleetrun::launch::roll_call_test
