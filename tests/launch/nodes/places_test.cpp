#include "launch/nodes/places.h"

#include <doctest/doctest.h>

#include "support/temporary_folder.h"

namespace fleetrun::launch::places_test {
namespace {

const Placed kThree = {1,
                       "run",
                       {{"10.0.0.1", "one", "/a/log", {{0}, {1}}},
                        {"10.0.0.2", "two", "/b/log", {{0}}},
                        {"10.0.0.3", "three", "/c/log", {{0}, {1}, {2}}}}};

TEST_CASE("the ranks of each node follow those of the node before") {
  CHECK(world_of(kThree) == 6);
  CHECK(ranks_of_node(kThree, 0).first == 0);
  CHECK(ranks_of_node(kThree, 2).first == 3);
  CHECK(ranks_of_node(kThree, 2).last() == 5);
  CHECK(node_of_rank(kThree, 1) == 0);
  CHECK(node_of_rank(kThree, 2) == 1);
  CHECK(node_of_rank(kThree, 5) == 2);
  CHECK_FALSE(node_of_rank(kThree, 6));
  CHECK_FALSE(node_of_rank(kThree, -1));
  CHECK(name_of_node(kThree, 1) == "node 1 (10.0.0.2, two)");
}

TEST_CASE("the log folder says where the ranks are, and the next run in it does not keep that") {
  const TemporaryFolder folder;
  CHECK_FALSE(read_places(folder.path()));
  {
    const LogFolder logs(folder.path());
    write_places(logs, kThree);
  }
  const auto read = read_places(folder.path());
  REQUIRE(read);
  CHECK(read->node_rank == 1);
  CHECK(read->nodes[2].logs == "/c/log");
  CHECK(world_of(*read) == 6);
  { const LogFolder logs(folder.path()); }
  CHECK_FALSE(read_places(folder.path()));
}

TEST_CASE("an attempt keeps where its ranks were, and a later run in the folder removes that") {
  const TemporaryFolder folder;
  {
    const LogFolder logs(folder.path());
    write_places(logs, kThree);
    logs.keep_attempt(0);
    logs.keep_attempt(1);
    Placed two = kThree;
    two.node_rank = 0;
    two.nodes.pop_back();
    two.attempt = 2;
    write_places(logs, two);
    logs.keep_attempt(2);
    two.nodes.pop_back();
    two.attempt = 4;
    write_places(logs, two);
  }
  CHECK(world_of(*read_places(folder / "attempt-1")) == 6);
  CHECK(world_of(*read_places(folder / "attempt-2")) == 3);
  const auto later = later_places(folder.path(), 0);
  REQUIRE(later.size() == 2);
  CHECK(later[0].attempt == 2);
  CHECK(later[1].attempt == 4);
  CHECK(world_of(later[1]) == 2);
  CHECK(later_places(folder.path(), 2).size() == 1);
  CHECK(later_places(folder.path(), 4).empty());
  { const LogFolder logs(folder.path()); }
  CHECK_FALSE(folder.has("attempt-0"));
  CHECK(later_places(folder.path(), 0).empty());
}

TEST_CASE("a node keeps its address and its log folder when its number changes") {
  Placed two = kThree;
  two.nodes.erase(two.nodes.begin() + 1);
  CHECK(number_of_node(two, kThree.nodes[2]) == 1);
  CHECK_FALSE(number_of_node(two, kThree.nodes[1]));
}

TEST_CASE("a file of somebody else says nothing about places") {
  const TemporaryFolder folder;
  for (const char* text : {"", "hello", "{}", R"({"node_rank": -1, "run_id": "r", "nodes": []})",
                           R"({"node_rank": -1, "run_id": "r",
                               "nodes": [{"address": "a", "host": "b", "logs": "c", "device_ids": [[0]]}]})"}) {
    CAPTURE(text);
    folder.write(".nodes", text);
    CHECK_FALSE(read_places(folder.path()));
  }
}

}  // namespace
}  // namespace fleetrun::launch::places_test
