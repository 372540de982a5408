// `fleetrun logs -f` in an elastic run: the ranks have other numbers, nodes and logs after each change of the nodes.
#include "e2e/nodes/cluster.h"
#include "e2e/nodes/follower.h"

namespace fleetrun::followed_logs_test {
namespace {

// Each rank says where it is, and works until the file "go" exists. The logs of attempt 0 on node 2 are longer than
// those on node 1.
const char* const kScript =
    "[ $TORCHELASTIC_RESTART_COUNT$NODE = 0node2 ] && seq 1000 1009; "
    "echo rank $RANK of $WORLD_SIZE on $NODE; touch $SHARED/$WORLD_SIZE.$TORCHELASTIC_RESTART_COUNT.$RANK; "
    "while [ ! -e $SHARED/go ]; do sleep 0.05; done";

void start(Cluster& cluster, int node, const Words& more = {}) {
  cluster.set(node, "SHARED", cluster.shared() / "");
  cluster.set(node, "NODE", "node" + std::to_string(node));
  Words words = {"--nnodes=2:3"};
  words.insert(words.end(), more.begin(), more.end());
  for (const char* word : {"--nproc_per_node=2", "--", "/bin/sh", "-c", kScript}) words.emplace_back(word);
  cluster.start(node, words);
}

bool all_run(const Cluster& cluster, int world, int restarts) {
  return comes_true(
      [&] {
        for (int rank = 0; rank < world; ++rank)
          if (!cluster.shared().has(std::to_string(world) + "." + std::to_string(restarts) + "." +
                                    std::to_string(rank)))
            return false;
        return true;
      },
      within(Cluster::kLimit));
}

// The lines of `text` that do not count.
std::string without_counts(const std::string& text) {
  std::istringstream lines(text);
  std::string rest;
  for (std::string line; std::getline(lines, line);)
    if (!contains(line, "100")) rest += line + "\n";
  return rest;
}

TEST_CASE(
    "logs -f goes on with the ranks of each attempt when an elastic run loses a node and takes one in") {
  Cluster cluster(3);
  for (const int node : {0, 1, 2}) start(cluster, node);
  REQUIRE(all_run(cluster, 6, 0));
  Follower all(cluster, 0, "all", {"--rank=all"}), second(cluster, 0, "second", {"--rank=2"}),
      last(cluster, 0, "last", {"--rank=5"}), on_node_2(cluster, 2, "on_node_2"),
      fifth_on_node_2(cluster, 2, "fifth_on_node_2", {"--rank=4"});
  for (int rank = 0; rank < 6; ++rank)
    REQUIRE(all.shows("[" + std::to_string(rank) + "] rank " + std::to_string(rank) + " of 6 on node" +
                      std::to_string(rank / 2)));
  REQUIRE(second.shows("rank 2 of 6 on node1\n"));
  REQUIRE(last.shows("rank 5 of 6 on node2\n"));
  REQUIRE(on_node_2.shows("[5] rank 5 of 6 on node2\n"));
  REQUIRE(fifth_on_node_2.shows("rank 4 of 6 on node2\n"));

  cluster.kill(1);
  REQUIRE(all_run(cluster, 4, 1));
  for (int rank = 0; rank < 4; ++rank)
    REQUIRE(all.shows("[" + std::to_string(rank) + "] rank " + std::to_string(rank) + " of 4 on node" +
                      (rank < 2 ? "0" : "2")));
  REQUIRE(second.shows("rank 2 of 4 on node2\n"));
  REQUIRE(last.shows(
      "fleetrun: the run now has the ranks 0 to 3; nothing more comes from rank 5 until nodes join\n"));
  REQUIRE(on_node_2.shows("[3] rank 3 of 4 on node2\n"));
  REQUIRE(fifth_on_node_2.shows("nothing more comes from rank 4 until nodes join\n"));

  start(cluster, 1, {"--log_dir=again"});
  REQUIRE(all_run(cluster, 6, 1));
  for (const char* rank : {"2", "3"})
    REQUIRE(all.shows("[" + std::string(rank) + "] rank " + rank + " of 6 on node1\n"));
  // A run that ends does not wait for a follower that has asked for nothing since the nodes changed.
  REQUIRE(second.ends_with(" may have more lines\nrank 2 of 4 on node2\nrank 2 of 6 on node1\n"));
  REQUIRE(last.ends_with("until nodes join\nrank 5 of 6 on node2\n"));
  REQUIRE(fifth_on_node_2.ends_with("until nodes join\nrank 4 of 6 on node2\n"));
  REQUIRE(on_node_2.shows("[4] rank 4 of 6 on node2\n"));
  cluster.shared().write("go", "");
  for (const int node : {0, 1, 2}) {
    const ChildResult end = cluster.end_of(node);
    CHECK_MESSAGE(end.code == 0, end.err);
  }
  for (Follower* each : {&all, &second, &last, &on_node_2, &fifth_on_node_2}) CHECK(each->end() == 0);
  const std::string lost = "fleetrun: node 1 (127.0.0.2, ";
  CHECK_MESSAGE(second.shown().starts_with("rank 2 of 6 on node1\n" + lost), second.shown());
  CHECK_MESSAGE(
      without_counts(last.shown()) ==
          "rank 5 of 6 on node2\nfleetrun: the run now has the ranks 0 to 3; nothing more comes from rank 5 "
          "until nodes join\nrank 5 of 6 on node2\n",
      last.shown());
  CHECK_MESSAGE(contains(on_node_2.shown(), "[2] rank 2 of 4 on node2\n"), on_node_2.shown());
  for (int rank = 0; rank < 6; ++rank)  // no line has another rank's number
    for (const std::string& text : {all.shown(), on_node_2.shown()})
      for (int other = 0; other < 6; ++other)
        if (rank != other)
          CHECK_FALSE(contains(text, "[" + std::to_string(other) + "] rank " + std::to_string(rank) + " "));
}

TEST_CASE("logs -f on the node that takes over shows its own ranks, then those of all nodes") {
  Cluster cluster(3);
  for (const int node : {0, 1, 2}) start(cluster, node);
  REQUIRE(all_run(cluster, 6, 0));
  Follower all(cluster, 1, "all", {"--rank=all"});
  for (const char* line : {"[2] rank 2 of 6 on node1\n", "[3] rank 3 of 6 on node1\n"})
    REQUIRE(all.shows(line));
  cluster.kill(0);
  REQUIRE(all_run(cluster, 4, 1));
  for (int rank = 0; rank < 4; ++rank)
    REQUIRE(all.shows("[" + std::to_string(rank) + "] rank " + std::to_string(rank) + " of 4 on node" +
                      (rank < 2 ? "1" : "2")));
  cluster.shared().write("go", "");
  for (const int node : {1, 2}) {
    const ChildResult end = cluster.end_of(node);
    CHECK_MESSAGE(end.code == 0, end.err);
  }
  CHECK(all.end() == 0);
}

}  // namespace
}  // namespace fleetrun::followed_logs_test
