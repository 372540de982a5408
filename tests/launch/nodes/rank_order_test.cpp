#include "launch/nodes/rank_order.h"

#include <doctest/doctest.h>

namespace fleetrun::launch::rank_order_test {
namespace {

using Order = std::vector<std::size_t>;

TEST_CASE("nodes that claim a number get it, and the others take the free numbers as they came") {
  CHECK(rank_order({}) == Order{});
  CHECK(rank_order({std::nullopt, 0, std::nullopt}) == Order{1, 0, 2});
  CHECK(rank_order({2, 1, 0}) == Order{2, 1, 0});
}

TEST_CASE("numbers that nobody has are skipped") {
  CHECK(rank_order({3, 0}) == Order{1, 0});
  CHECK(rank_order({5, std::nullopt, 0}) == Order{2, 1, 0});
}

}  // namespace
}  // namespace fleetrun::launch::rank_order_test
