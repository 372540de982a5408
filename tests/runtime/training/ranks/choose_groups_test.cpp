#include "runtime/training/ranks/choose_groups.h"

#include <doctest/doctest.h>

namespace fleetrun::runtime::choose_groups_test {
namespace {

TEST_CASE("groups are the ranks of a host, if all hosts have equally many, one after the other") {
  CHECK(ranks_per_host({"a", "a", "b", "b"}) == 2);
  CHECK(ranks_per_host({"a", "a", "a", "b", "b", "b"}) == 3);
  CHECK(ranks_per_host({"a", "a", "b", "b", "c", "c"}) == 2);
  CHECK_FALSE(ranks_per_host({}));
  CHECK_FALSE(ranks_per_host({"a"}));
  CHECK_FALSE(ranks_per_host({"a", "a", "a", "a"}));  // one host
  CHECK_FALSE(ranks_per_host({"a", "b", "c", "d"}));  // one rank each
  CHECK_FALSE(ranks_per_host({"a", "a", "b"}));
  CHECK_FALSE(ranks_per_host({"a", "a", "b", "b", "b", "b"}));
  CHECK_FALSE(ranks_per_host({"a", "b", "a", "b"}));
  CHECK_FALSE(ranks_per_host({"a", "a", "b", "c"}));
}

TEST_CASE("groups are taken where they are clearly faster, by the faster of the two ways") {
  using job::HierarchicalAlgorithm;
  CHECK_FALSE(fastest({.flat = 100, .leader = 95, .scatter = 95}));
  CHECK_FALSE(fastest({.flat = 100, .leader = 300, .scatter = 100}));
  CHECK(fastest({.flat = 100, .leader = 60, .scatter = 59}) == HierarchicalAlgorithm::leader);
  CHECK(fastest({.flat = 100, .leader = 60, .scatter = 50}) == HierarchicalAlgorithm::scatter);
  CHECK(fastest({.flat = 100, .leader = 92, .scatter = 88}) == HierarchicalAlgorithm::scatter);
  CHECK(fastest({.flat = 100, .leader = 80, .scatter = 120}) == HierarchicalAlgorithm::leader);
}

TEST_CASE("nothing is measured where the job decides, without the search, and on one host") {
  ProgressPage page;
  comm::World world;  // has no communicator: a measurement would crash
  world.hosts = {"a", "a", "b", "b"};
  job::StrategySpec strategy;
  strategy.use_hierarchical_allreduce = true;
  CHECK(choose_groups(strategy, world, page).use_hierarchical_allreduce == true);
  strategy.use_hierarchical_allreduce.reset();
  strategy.cudnn_exhaustive_search = false;
  CHECK(choose_groups(strategy, world, page).use_hierarchical_allreduce == false);
  strategy.cudnn_exhaustive_search = true;
  world.hosts = {"a", "a"};
  CHECK(choose_groups(strategy, world, page).use_hierarchical_allreduce == false);
}

}  // namespace
}  // namespace fleetrun::runtime::choose_groups_test
