#include "launch/nodes/quorum.h"

#include <doctest/doctest.h>

namespace fleetrun::launch::quorum_test {
namespace {

AttemptsSeen saw_start(int attempt, int nodes, int rank) {
  AttemptsSeen seen;
  seen.be_ready({attempt, nodes, rank});
  seen.see_start(attempt);
  return seen;
}

AttemptsSeen then_ready(AttemptsSeen seen, int attempt, int nodes, int rank) {
  seen.be_ready({attempt, nodes, rank});
  return seen;
}

TEST_CASE("a node knows the last start, and the attempts since then for which it was ready") {
  AttemptsSeen seen;
  CHECK_FALSE(seen.last());
  seen.be_ready({0, 3, 1});
  CHECK_FALSE(seen.started);
  seen.be_ready({1, 2, 1});
  CHECK(seen.ready_for.size() == 2);
  seen.see_start(1);
  CHECK(seen.started == AttemptSeen{1, 2, 1});
  CHECK(seen.ready_for.empty());
  CHECK(seen.last() == AttemptSeen{1, 2, 1});
}

TEST_CASE("a node is not ready twice for an attempt, and not for an earlier one") {
  AttemptsSeen seen = saw_start(2, 3, 1);
  seen.be_ready({2, 5, 4});
  seen.be_ready({1, 5, 4});
  CHECK(seen == saw_start(2, 3, 1));
}

TEST_CASE("more than half of the nodes of the last started attempt may begin another one") {
  CHECK_FALSE(missing_quorum({saw_start(0, 4, 1), saw_start(0, 4, 2), saw_start(0, 4, 3)}));
  const auto missing = missing_quorum({saw_start(0, 4, 1), saw_start(0, 4, 3)});
  REQUIRE(missing);
  CHECK(missing->attempt == 0);
  CHECK(missing->nodes == 4);
  CHECK(missing->here == 2);
}

TEST_CASE("half of the nodes may begin another attempt if the first node is among them") {
  CHECK_FALSE(missing_quorum({saw_start(0, 4, 0), saw_start(0, 4, 3)}));
  CHECK_FALSE(missing_quorum({saw_start(0, 2, 0)}));
  CHECK(missing_quorum({saw_start(0, 2, 1)}));
}

TEST_CASE("nodes that took part in no attempt do not count") {
  CHECK(missing_quorum({saw_start(0, 4, 1), saw_start(0, 4, 2), {}, {}}));
  CHECK_FALSE(missing_quorum({{}, {}}));  // a new run
}

TEST_CASE("an attempt that may have started needs a quorum, too") {
  const AttemptsSeen second = then_ready(saw_start(0, 2, 1), 1, 3, 1);
  AttemptsSeen third;  // came for attempt 1
  third.be_ready({1, 3, 2});
  CHECK(missing_quorum({second, third})->attempt == 0);  // the first one may go on with attempt 0 alone
  CHECK_FALSE(missing_quorum({saw_start(0, 2, 0), second, third}));
}

TEST_CASE("an attempt before the last start does not count") {
  AttemptsSeen late = saw_start(0, 3, 2);  // it was lost before attempt 1
  CHECK(missing_quorum({saw_start(1, 2, 1), late})->attempt == 1);
  CHECK_FALSE(missing_quorum({saw_start(1, 2, 0), late}));
  CHECK(last_attempt({saw_start(1, 2, 1), late}) == 1);
  CHECK(last_attempt({{}}) == -1);
}

}  // namespace
}  // namespace fleetrun::launch::quorum_test
