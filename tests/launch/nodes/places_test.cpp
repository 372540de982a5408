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
