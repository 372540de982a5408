#include "launch/run/wait_notice.h"

#include <numeric>

#include <doctest/doctest.h>

namespace fleetrun::launch::wait_notice_test {
namespace {

using namespace std::chrono_literals;

TEST_CASE("a long stop says for whom it waits, and until when") {
  CHECK(describe_wait({3}, 15s, 60s) == "waiting for rank 3 to end, 15 s so far; --grace allows 60 s");
  CHECK(describe_wait({0, 3}, 5s, 10s) == "waiting for ranks 0, 3 to end, 5 s so far; --grace allows 10 s");
}

TEST_CASE("what SIGKILL does not end is named") {
  CHECK(describe_survivors({3}, 12s) == "rank 3 is still there, 12 s after SIGKILL");
  CHECK(describe_survivors({1, 2}, 12s) == "ranks 1, 2 are still there, 12 s after SIGKILL");
}

TEST_CASE("of many ranks some are named") {
  std::vector<int> ranks(1200);
  std::iota(ranks.begin(), ranks.end(), 0);
  CHECK(describe_wait(ranks, 5s, 10s) ==
        "waiting for ranks 0, 1, 2, 3, 4, 5, 6, 7 and 1192 more to end, 5 s so far; --grace allows 10 s");
}

// Runs the loop until somebody has said something.
std::string first_words(const Verdict& verdict, Clock::duration at_most) {
  EventLoop loop;
  std::string words;
  WaitNotice notice(loop, 60s, verdict, [&](std::string_view line) {
    words = line;
    loop.stop();
  });
  notice.look();
  loop.call_at(Clock::now() + at_most, [&] { loop.stop(); });
  loop.run();
  return words;
}

TEST_CASE("a run that ends says so after 5 s, one that goes on or calls the roll says nothing") {
  Verdict verdict = {.ranks = std::vector<RankVerdict>(2)};
  CHECK(first_words(verdict, 10ms).empty());
  verdict.cause = Cause::exited;
  verdict.ranks[0].role = Role::cause;
  CHECK(first_words(verdict, 10ms).empty());
  verdict.asked_to_end = Clock::now();
  CHECK(first_words(verdict, 10ms).empty());
  verdict.asked_to_end = Clock::now() - 5s;
  CHECK(first_words(verdict, 20s) == "waiting for rank 1 to end, 5 s so far; --grace allows 60 s");
  verdict.killed = Clock::now() - 12s;
  CHECK(first_words(verdict, 20s) == "rank 1 is still there, 12 s after SIGKILL");
}

}  // namespace
}  // namespace fleetrun::launch::wait_notice_test
