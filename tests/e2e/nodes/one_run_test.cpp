// One run over several nodes: what every rank is told, and how the run ends.
#include <set>

#include "e2e/nodes/cluster.h"

namespace fleetrun::one_run_test {
namespace {

using Environment = std::map<std::string, std::string>;

// What the program `env` has printed.
Environment environment_in(const std::string& log) {
  Environment all;
  std::istringstream text(log);
  for (std::string line; std::getline(text, line);)
    if (const auto sign = line.find('='); sign != std::string::npos)
      all[line.substr(0, sign)] = line.substr(sign + 1);
  return all;
}

// Of all ranks, in their order. `ranks`: of each node.
std::vector<Environment> environments(const Cluster& cluster, const std::vector<int>& ranks) {
  std::vector<Environment> all;
  for (int node = 0; node < cluster.nodes(); ++node)
    for (int rank = 0; rank < ranks[static_cast<std::size_t>(node)]; ++rank)
      all.push_back(environment_in(cluster.log(node, rank)));
  return all;
}

std::vector<std::string> split(const std::string& text) {
  std::vector<std::string> parts;
  std::istringstream stream(text);
  for (std::string part; std::getline(stream, part, ',');) parts.push_back(part);
  return parts;
}

void check_environments(const Cluster& cluster, const std::vector<int>& ranks) {
  std::vector<Environment> all = environments(cluster, ranks);
  const std::string world = std::to_string(all.size());
  const auto endpoints = split(all.front()["PADDLE_TRAINER_ENDPOINTS"]);
  REQUIRE(endpoints.size() == all.size());
  CHECK(std::set(endpoints.begin(), endpoints.end()).size() == all.size());
  std::size_t rank = 0;
  for (int node = 0; node < cluster.nodes(); ++node)
    for (int local = 0; local < ranks[static_cast<std::size_t>(node)]; ++local, ++rank) {
      CAPTURE(rank);
      Environment& own = all[rank];
      const Environment wanted = {
          {"PADDLE_TRAINER_ID", std::to_string(rank)},
          {"PADDLE_TRAINERS_NUM", world},
          {"PADDLE_CURRENT_ENDPOINT", endpoints[rank]},
          {"PADDLE_TRAINER_ENDPOINTS", all.front()["PADDLE_TRAINER_ENDPOINTS"]},
          {"PADDLE_RANK_IN_NODE", std::to_string(local)},
          {"PADDLE_NNODES", std::to_string(cluster.nodes())},
          {"RANK", std::to_string(rank)},
          {"WORLD_SIZE", world},
          {"LOCAL_RANK", std::to_string(local)},
          {"LOCAL_WORLD_SIZE", std::to_string(ranks[static_cast<std::size_t>(node)])},
          {"NODE_RANK", std::to_string(node)},
          {"GROUP_RANK", std::to_string(node)},
          {"GROUP_WORLD_SIZE", std::to_string(cluster.nodes())},
          {"MASTER_ADDR", cluster.address(0)},
          {"MASTER_PORT", all.front()["MASTER_PORT"]},
          {"TORCHELASTIC_RUN_ID", all.front()["TORCHELASTIC_RUN_ID"]},
      };
      for (const auto& variable : wanted) {
        CAPTURE(variable.first);
        CHECK(own[variable.first] == variable.second);
      }
      CHECK(endpoints[rank].starts_with(cluster.address(node) + ":"));
    }
}

void check_success(const std::vector<ChildResult>& ends) {
  for (const ChildResult& end : ends) CHECK_MESSAGE(end.code == 0, end.err);
}

TEST_CASE("2 nodes with 2 ranks each end with 0, and every rank knows its place") {
  Cluster cluster(2);
  check_success(cluster.run({"--nproc_per_node=2", FAKE_WORKER, "env"}));
  check_environments(cluster, {2, 2});
  CHECK(cluster.report(0)["ranks"].size() == 4);
  CHECK(cluster.report(0)["run_id"] == cluster.report(1)["run_id"]);
  CHECK(cluster.nothing_left());
}

TEST_CASE("nodes may have different numbers of ranks") {
  Cluster cluster(2);
  cluster.start(0, {"--nproc_per_node=1", FAKE_WORKER, "env"});
  cluster.start(1, {"--nproc_per_node=3", FAKE_WORKER, "env"});
  check_success(cluster.ends());
  check_environments(cluster, {1, 3});
}

TEST_CASE("3 nodes that name only the meeting point take their places in the order of arrival") {
  Cluster cluster(3);
  Words words = cluster.by_master();
  words.insert(words.end(), {"--nproc_per_node=2", FAKE_WORKER, "env"});
  for (int node = 0; node < 3; ++node) cluster.start_exactly(node, words);
  const auto ends = cluster.ends();
  check_success(ends);
  CHECK(std::count_if(ends.begin(), ends.end(), [](const ChildResult& end) {
          return contains(end.err, "fleetrun: start the other 2 nodes with: ") &&
                 contains(end.err, " --nproc_per_node=2 ");
        }) == 1);
  std::set<std::string> places, ranks;
  for (int node = 0; node < 3; ++node)
    for (int local = 0; local < 2; ++local) {
      Environment own = environment_in(cluster.log(node, local));
      places.insert(own["NODE_RANK"]);
      CHECK(own["GLOO_SOCKET_IFNAME"] == "lo");
      ranks.insert(own["RANK"]);
      CHECK(std::stoi(own["RANK"]) == 2 * std::stoi(own["NODE_RANK"]) + local);
    }
  CHECK(places.size() == 3);
  CHECK(ranks.size() == 6);
}

TEST_CASE("nodes may name the meeting point and their ranks") {
  Cluster cluster(2);
  for (const int node : {1, 0}) {
    Words words = cluster.by_master();
    words.insert(words.end(), {"--rank=" + std::to_string(node), "--host=" + cluster.address(node),
                               "--nproc_per_node=2", FAKE_WORKER, "env"});
    cluster.start_exactly(node, words);
  }
  check_success(cluster.ends());
  check_environments(cluster, {2, 2});
}

TEST_CASE("on hosts of their own, nodes find their places by their addresses") {
  if (const auto missing = Namespaces::missing()) LEAVE_OUT(*missing);
  const Namespaces network(2);
  Cluster cluster(2, &network);
  for (const int node : {1, 0})
    cluster.start_exactly(node, {"--ips=" + cluster.address(0) + ", " + cluster.address(1),
                                 "--nproc_per_node=2", FAKE_WORKER, "env"});
  check_success(cluster.ends());
  check_environments(cluster, {2, 2});
  CHECK(environment_in(cluster.log(1, 0))["GLOO_SOCKET_IFNAME"] == "eth0");
}

TEST_CASE("a rank that fails on one node is the cause on both, and the first node reports all ranks") {
  Cluster cluster(2);
  const std::string script = "[ $RANK = 2 ] && { echo no more paper; exit 3; }; exec sleep 100";
  const auto ends = cluster.run({"--nproc_per_node=2", "--", "/bin/sh", "-c", script});
  for (const ChildResult& end : ends) {
    CHECK(end.code == 3);
    CHECK(cause_on(end).starts_with("fleetrun: rank 2 exited with code 3 (pid "));
    CHECK(cause_on(end) == cause_on(ends.front()));
    CHECK(contains(end.err, "fleetrun: the last lines of log/workerlog.0 on "));
    CHECK(contains(end.err, "    no more paper\n"));
  }
  for (const int node : {0, 1}) CHECK(cluster.report(node)["last_lines"] == Words{"no more paper"});
  const auto report = cluster.report(0);
  CHECK(report["cause"] == "exited");
  CHECK(report["exit_code"] == 3);
  CHECK(report["first_failed_rank"] == 2);
  const Words roles = {"stopped", "stopped", "primary", "stopped"};
  REQUIRE(report["ranks"].size() == 4);
  for (std::size_t rank = 0; rank < 4; ++rank) {
    CHECK(report["ranks"][rank]["rank"] == rank);
    CHECK(report["ranks"][rank]["role"] == roles[rank]);
  }
  CHECK(cluster.report(1)["ranks"].size() == 2);
  CHECK(cluster.nothing_left());
}

TEST_CASE("hunt 25: no node calls a run completed that failed on another node") {
  Cluster cluster(2);
  const std::string go = cluster.shared().path() + "/go";
  cluster.start({"/bin/sh", "-c",
                 "[ $RANK = 1 ] && { echo $$ > ../pid; exit 0; }; until [ -e " + go +
                     " ]; do sleep 0.02; done; exit 3"});
  const pid_t completed = pid_in(cluster.shared(), "pid", within(30s));
  REQUIRE(comes_true([&] { return !is_alive(completed); }, within(10s)));
  cluster.shared().write("go", "");
  for (const int node : {0, 1}) {
    const ChildResult end = cluster.end_of(node);
    CHECK(end.code == 3);
    CHECK_FALSE(contains(end.err, "Local processes completed."));
  }
}

TEST_CASE("a node that cannot start its ranks ends the run with the same words everywhere") {
  Cluster cluster(2);
  std::filesystem::copy_file(FAKE_WORKER, cluster.folder(0) + "/program");
  std::ofstream(cluster.folder(1) + "/program") << "no program";
  std::filesystem::permissions(cluster.folder(1) + "/program", std::filesystem::perms::owner_all);
  const auto ends = cluster.run({"--nproc_per_node=2", "./program", "sleep", "100"});
  for (const ChildResult& end : ends) {
    CHECK(end.code == 126);
    CHECK_MESSAGE(contains(cause_on(end), "rank 2 could not be started"), end.err);
    CHECK(cause_on(end) == cause_on(ends.front()));
  }
  CHECK(cluster.nothing_left());
}

// Names as long as a resolver takes them: fewer ranks fill a variable.
TEST_CASE("a list of endpoints that is too long for a variable goes by a file, and the ranks start") {
  if (testing::kSlowdown > 1)
    LEAVE_OUT("to start 350 ranks, a sanitized fleetrun takes longer than a node may be silent");
  if (!is_root() || !can_mount()) LEAVE_OUT("another /etc/hosts needs root and mount namespaces");
  constexpr int kRanks = 350;  // of each node
  Cluster cluster(2);
  const std::string label(60, 'x');
  const auto name = [&](int node) {
    return "node" + std::to_string(node) + "." + label + "." + label + "." + label + ".test";
  };
  const std::string script =
      "[ -z \"$PADDLE_TRAINER_ENDPOINTS\" ] && echo $(sed -n \"$((RANK + 2))p\" $FLEETRUN_TRAINER_ENDPOINTS_FILE)";
  for (const int node : {0, 1}) {
    cluster.set_hosts(node, "127.0.0.1 " + name(0) + "\n127.0.0.2 " + name(1) + "\n");
    cluster.start_exactly(node,
                          {"--ips=" + name(0) + "," + name(1), "--node_rank=" + std::to_string(node),
                           "--master_port=" + std::to_string(cluster.port()),
                           "--nproc_per_node=" + std::to_string(kRanks), "--", "/bin/sh", "-c", script});
  }
  const auto ends = cluster.ends();
  check_success(ends);
  for (const int node : {0, 1}) {
    CHECK_MESSAGE(contains(ends[static_cast<std::size_t>(node)].err,
                           "the workers do not get PADDLE_TRAINER_ENDPOINTS ("),
                  ends[static_cast<std::size_t>(node)].err);
    for (const int rank : {0, kRanks - 1}) {
      const auto whole = nlohmann::json::parse(
          cluster.read(node, "log/backup_env." + std::to_string(kRanks * node + rank) + ".json"));
      CHECK(cluster.log(node, rank) == whole["PADDLE_CURRENT_ENDPOINT"].get<std::string>() + "\n");
      CHECK(split(whole["PADDLE_TRAINER_ENDPOINTS"]).size() == 2 * kRanks);
    }
  }
}

TEST_CASE("a rank may start a run of its own, which has only the rank's node") {
  Cluster cluster(2);
  const std::string show = "echo $PADDLE_NNODES nodes, rank $RANK of $WORLD_SIZE, ${NODE_RANK-no} NODE_RANK";
  for (const ChildResult& end : cluster.run({"--nproc_per_node=1", FLEETRUN_BINARY, "--log_dir=inner",
                                             "--nproc_per_node=2", "--", "/bin/sh", "-c", show}))
    CHECK_MESSAGE(end.code == 0, end.err);
  for (const int node : {0, 1})
    CHECK(cluster.read(node, "inner/workerlog.1") == "1 nodes, rank 1 of 2, no NODE_RANK\n");
}

}  // namespace
}  // namespace fleetrun::one_run_test
