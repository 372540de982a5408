// Before a run over several nodes starts: who waits for whom, who may join, and what must be the same on all nodes.
#include <sys/stat.h>

#include "e2e/nodes/cluster.h"
#include "support/stranger.h"

namespace fleetrun::joining_test {
namespace {

Endpoint meeting_of(const Cluster& cluster) {
  return {cluster.address(0), static_cast<std::uint16_t>(cluster.port())};
}

bool is_listening(const Cluster& cluster) {
  return comes_true(
      [&] {
        try {
          const testing::Stranger stranger(meeting_of(cluster));
          return true;
        } catch (const std::runtime_error&) {
          return false;
        }
      },
      within(10s));
}

void write_as_key(const std::string& path, char letter) {
  std::filesystem::create_directories(std::filesystem::path(path).parent_path());
  std::ofstream(path) << std::string(40, letter);
  ::chmod(path.c_str(), 0600);
}

TEST_CASE("flags that differ end the run with 76, and each node shows both values") {
  Cluster cluster(2);
  cluster.start(0, {"--max_restart=1", "--grace=3", FAKE_WORKER, "sleep", "100"});
  cluster.start(1, {"--max_restart=2", "--grace=3", FAKE_WORKER, "sleep", "100"});
  for (const ChildResult& end : cluster.ends()) {
    CHECK(end.code == 76);
    CHECK_MESSAGE(contains(end.err, "the nodes do not agree:\n  --max_restart: 1 on node 0 (127.0.0.1, "),
                  end.err);
    CHECK_MESSAGE(contains(end.err, ", 2 on node 1 (127.0.0.2, "), end.err);
    CHECK_FALSE(contains(end.err, "--grace"));
  }
  CHECK(cluster.log(0, 0).empty());
}

TEST_CASE(
    "hunt 77: without --node_rank, a run that meets a doctor on its own host becomes the first node later") {
  Cluster cluster(2);
  const auto on = [&](int node, const Words& words) {
    Words all = words;
    all.insert(all.begin() + (words.front() == "doctor" ? 1 : 0),
               {"--nnodes=2", "--master=" + cluster.address(0) + ":" + std::to_string(cluster.port())});
    cluster.start_exactly(node, all);
  };
  on(1, {"doctor", "--join_timeout=3"});  // all nodes are on this host
  REQUIRE(is_listening(cluster));
  on(0, {FAKE_WORKER, "print", "started"});
  CHECK(cluster.says(0, "runs fleetrun doctor, and "));
  cluster.end_of(1);
  on(1, {FAKE_WORKER, "print", "started"});
  for (const ChildResult& end : cluster.ends()) CHECK_MESSAGE(end.code == 0, end.err);
}

TEST_CASE("nodes that count different numbers of nodes end the run with 76") {
  Cluster cluster(2);
  cluster.start(0, {"--nnodes=1:2", FAKE_WORKER, "sleep", "100"});
  cluster.start(1, {"--nnodes=2", FAKE_WORKER, "sleep", "100"});
  for (const ChildResult& end : cluster.ends()) {
    CHECK(end.code == 76);
    CHECK_MESSAGE(contains(end.err, "  the number of nodes: 1:2 on node 0 (127.0.0.1, "), end.err);
    CHECK_MESSAGE(contains(end.err, ", 2 on node 1 (127.0.0.2, "), end.err);
  }
}

TEST_CASE("the program and its arguments must be the same") {
  Cluster cluster(2);
  cluster.start(0, {FAKE_WORKER, "print", "one"});
  cluster.start(1, {FAKE_WORKER, "print", "two"});
  for (const ChildResult& end : cluster.ends()) {
    CHECK(end.code == 76);
    CHECK_MESSAGE(contains(end.err, "  its arguments: print one on node 0 (127.0.0.1, "), end.err);
    CHECK_MESSAGE(contains(end.err, ", print two on node 1 (127.0.0.2, "), end.err);
  }
}

TEST_CASE("a node that cannot start ends the wait of the others at once, with its reason and its code") {
  Cluster cluster(2);
  cluster.start(0, {FAKE_WORKER, "sleep", "100"});
  REQUIRE(is_listening(cluster));
  cluster.start(1, {"/nowhere/program"});
  CHECK(cluster.end_of(1).code == 127);
  const ChildResult end = cluster.end_of(0, 20s);
  CHECK(end.code == 127);
  CHECK_MESSAGE(
      contains(end.err, "node 1 (127.0.0.2) cannot join: the program /nowhere/program does not exist"),
      end.err);
}

TEST_CASE("a node whose log folder is in the way of a file ends the wait of the others, too") {
  Cluster cluster(2);
  cluster.start(0, {FAKE_WORKER, "sleep", "100"});
  REQUIRE(is_listening(cluster));
  std::ofstream(cluster.folder(1) + "/log") << "mine";
  cluster.start(1, {FAKE_WORKER, "sleep", "100"});
  CHECK(cluster.end_of(1).code == 73);
  const ChildResult end = cluster.end_of(0, 20s);
  CHECK(end.code == 73);
  CHECK_MESSAGE(contains(end.err, "node 1 (127.0.0.2) cannot join: "), end.err);
}

TEST_CASE("fleetrun ps on a spare node says that it is one, and fleetrun stop there ends only that node") {
  Cluster cluster(3);
  cluster.start({"--spares=1", FAKE_WORKER, "sleep", "100"});
  int spare = 0;  // the last one to come
  REQUIRE(comes_true(
      [&] {
        for (const int node : {1, 2})
          if (contains(cluster.errors(node), "this node waits until a node is lost")) spare = node;
        return spare > 0;
      },
      within(30s)));
  const std::string logs = "--log_dir=" + cluster.folder(spare) + "/log";
  const ChildResult seen = run_child({FLEETRUN_BINARY, "ps", logs});
  CHECK_MESSAGE(
      contains(seen.out,
               "no rank runs yet: this node is a spare of the run that node 0 (127.0.0.1) coordinates"),
      seen.out, seen.err);
  CHECK(run_child({FLEETRUN_BINARY, "stop", logs}).code == 0);
  const ChildResult end = cluster.end_of(spare);
  CHECK(end.code == 143);
  CHECK_MESSAGE(contains(end.err, "stopped by SIGTERM (15) while this node was a spare"), end.err);
  cluster.send(0, SIGTERM);
  for (const int node : {0, 3 - spare}) CHECK(cluster.end_of(node).code == 143);
}

TEST_CASE("of two nodes with one log folder, the second one names it and ends the wait of the first") {
  Cluster cluster(2);
  const std::string logs = cluster.shared().path() + "/logs";
  const Words words = {"--log_dir=" + logs, FAKE_WORKER, "sleep", "100"};
  cluster.start(0, words);
  REQUIRE(is_listening(cluster));
  cluster.start(1, words);
  for (const int node : {1, 0}) {
    const ChildResult end = cluster.end_of(node, 20s);
    CHECK(end.code == 73);
    CHECK_MESSAGE(contains(end.err, logs + "/ is in use by fleetrun, pid "), end.err);
  }
}

TEST_CASE(
    "hunt 25: hosts that share the current folder get log folders of their own, and an error names the other host") {
  if (run_child({"/bin/sh", "-c", "unshare --uts true"}).code != 0)
    LEAVE_OUT("only root may name hosts in a namespace");
  Cluster cluster(2);
  std::filesystem::create_directory(cluster.folder(0) + "/log");
  std::filesystem::create_directory_symlink(cluster.folder(0) + "/log", cluster.folder(1) + "/log");
  for (const int node : {0, 1})
    cluster.start_after(node, {"/usr/bin/env", "unshare", "--uts", "sh", "-c",
                               "hostname \"$0\" && exec \"$@\"", "host" + std::to_string(node)});
  cluster.start(0, {FAKE_WORKER, "print", "hello"});
  REQUIRE(is_listening(cluster));
  cluster.start(1, {"--log_dir=log", FAKE_WORKER, "print", "hello"});
  const ChildResult refused = cluster.end_of(1, 20s);
  CHECK(refused.code == 73);
  CHECK_MESSAGE(contains(refused.err, " on host0\n"), refused.err);
  CHECK_MESSAGE(contains(refused.err, "--log_dir=\"log.$(hostname)\""), refused.err);
  CHECK(cluster.end_of(0, 20s).code == 73);

  cluster.start(0, {FAKE_WORKER, "print", "hello"});
  REQUIRE(is_listening(cluster));
  cluster.start(1, {FAKE_WORKER, "print", "hello"});
  for (const int node : {0, 1}) CHECK_MESSAGE(cluster.end_of(node, 20s).code == 0, cluster.errors(node));
  CHECK(contains(cluster.errors(1), "log/ is in use on host0: the logs of this node are in log.node1/\n"));
  CHECK(read_all(cluster.folder(1) + "/log.node1/workerlog.0") == "hello\n");
}

TEST_CASE("two versions of fleetrun do not run together") {
  const std::string answer = run_child({FLEETRUN_BINARY, "--version"}).out;  // "fleetrun 1.2.3\n"
  const std::string version = answer.substr(answer.rfind(' ') + 1, answer.find('\n') - answer.rfind(' ') - 1);
  std::string other = version, program = read_all(FLEETRUN_BINARY);
  other.back() = other.back() == '9' ? '8' : '9';
  for (std::size_t at = 0; (at = program.find(version, at)) != std::string::npos;)
    program.replace(at, version.size(), other);
  Cluster cluster(2);
  cluster.shared().write("fleetrun", program);
  std::filesystem::permissions(cluster.shared() / "fleetrun", std::filesystem::perms::owner_all);
  cluster.use(1, cluster.shared() / "fleetrun");
  for (const ChildResult& end : cluster.run({FAKE_WORKER, "exit", "0"})) {
    CHECK(end.code == 76);
    CHECK_MESSAGE(contains(end.err, "  fleetrun --version: " + version + " on node 0 (127.0.0.1, "), end.err);
    CHECK_MESSAGE(contains(end.err, ", " + other + " on node 1 (127.0.0.2, "), end.err);
  }
}

TEST_CASE("each value of the job file must be the same, whatever the file is called") {
  Cluster cluster(2);
  std::string other = kEndlessJob;
  other.replace(other.find("0.001"), 5, "0.002");
  std::ofstream(cluster.folder(0) + "/job.json") << kEndlessJob;
  std::ofstream(cluster.folder(1) + "/job.json") << other;
  for (const ChildResult& end : cluster.run({"--device=cpu", "job.json"})) {
    CHECK(end.code == 76);
    CHECK_MESSAGE(
        contains(end.err, "  optimizer.learning_rate of the job file: 0.001 on node 0 (127.0.0.1, "),
        end.err);
    CHECK_MESSAGE(contains(end.err, ", 0.002 on node 1 (127.0.0.2, "), end.err);
    CHECK_FALSE(contains(end.err, "batch_size"));
  }
}

TEST_CASE("the node whose --ips differ is named with both lists") {
  Cluster cluster(2);
  const std::string port = "--master_port=" + std::to_string(cluster.port());
  cluster.start_exactly(0, {"--ips=127.0.0.1,127.0.0.2", "--node_rank=0", port, FAKE_WORKER});
  cluster.start_exactly(1, {"--ips=127.0.0.1,127.0.0.3", "--node_rank=1", port, FAKE_WORKER});
  for (const ChildResult& end : cluster.ends()) {
    CHECK(end.code == 76);
    CHECK_MESSAGE(contains(end.err, "  --ips: 127.0.0.1,127.0.0.2 on node 0"), end.err);
    CHECK_MESSAGE(contains(end.err, ", 127.0.0.1,127.0.0.3 on node 1"), end.err);
  }
}

TEST_CASE("of two nodes that say they are the same one, the second ends with 76, and the run goes on") {
  Cluster cluster(3);
  Words as_node_1 = cluster.by_list(1);
  as_node_1.insert(as_node_1.end(), {FAKE_WORKER, "exit", "0"});
  cluster.start(0, {FAKE_WORKER, "exit", "0"});
  for (const int place : {1, 2}) cluster.start_exactly(place, as_node_1);
  const auto has_ended = [&](int node) { return !is_alive(cluster.front(node)); };
  REQUIRE(comes_true([&] { return has_ended(1) || has_ended(2); }, within(10s)));
  const int second = has_ended(1) ? 1 : 2;
  const ChildResult refused = cluster.end_of(second);
  CHECK(refused.code == 76);
  CHECK_MESSAGE(contains(refused.err, " both say that they are node 1"), refused.err);
  Words as_node_2 = cluster.by_list(2);
  as_node_2.insert(as_node_2.end(), {FAKE_WORKER, "exit", "0"});
  cluster.start_exactly(second, as_node_2);
  for (const ChildResult& end : cluster.ends()) CHECK_MESSAGE(end.code == 0, end.err);
}

TEST_CASE("a node with another key ends with 76 and the command that copies the right one") {
  Cluster cluster(2);
  cluster.set(1, "HOME", cluster.shared() / "other home");
  std::filesystem::create_directory(cluster.shared() / "other home");
  cluster.start({"--join_timeout=10", FAKE_WORKER, "sleep", "100"});
  const auto ends = cluster.ends();
  CHECK(ends[1].code == 76);
  CHECK_MESSAGE(contains(ends[1].err, "scp 127.0.0.1:.fleetrun/key ~/.fleetrun/key"), ends[1].err);
  CHECK(ends[0].code == 75);
  CHECK_MESSAGE(contains(ends[0].err, "a node with another key"), ends[0].err);
}

TEST_CASE("with --key_file, both nodes name that file when the keys differ") {
  Cluster cluster(2);
  for (const int node : {0, 1}) write_as_key(cluster.folder(node) + "/run.key", node == 0 ? 'a' : 'b');
  cluster.start({"--key_file=run.key", "--join_timeout=10", FAKE_WORKER, "sleep", "100"});
  const auto ends = cluster.ends();
  CHECK(ends[1].code == 76);
  CHECK_MESSAGE(contains(ends[1].err, "hint: copy the key of the first node to run.key of this node\n"),
                ends[1].err);
  CHECK_MESSAGE(contains(ends[0].err, "; copy run.key of the first node to it"), ends[0].err);
}

TEST_CASE("a key that is copied, named or not wanted lets nodes of different homes join") {
  for (const std::string way : {"copied", "flag", "variable", "insecure"}) {
    CAPTURE(way);
    Cluster cluster(2);
    Words words = {FAKE_WORKER, "exit", "0"};
    for (const int node : {0, 1}) {
      const std::string home = cluster.folder(node) + "/home", key = cluster.folder(node) + "/key";
      std::filesystem::create_directory(home);
      cluster.set(node, "HOME", home);
      write_as_key(way == "copied" ? home + "/.fleetrun/key" : key, 'k');
      if (way == "variable") cluster.set(node, "FLEETRUN_KEY_FILE", "key");
    }
    if (way == "flag") words.insert(words.begin(), "--key_file=key");
    if (way == "insecure") words.insert(words.begin(), "--insecure");
    for (const ChildResult& end : cluster.run(words)) {
      CHECK_MESSAGE(end.code == 0, end.err);
      CHECK(contains(end.err, "--insecure") == (way == "insecure"));
    }
  }
}

TEST_CASE("a key that others may read is refused") {
  Cluster cluster(2);
  write_as_key(cluster.home() + "/.fleetrun/key", 'k');
  ::chmod((cluster.home() + "/.fleetrun/key").c_str(), 0644);
  cluster.start(0, {FAKE_WORKER});
  const ChildResult end = cluster.end_of(0);
  CHECK(end.code == 76);
  CHECK_MESSAGE(contains(end.err, "its mode is 0644, wanted 0600"), end.err);
  CHECK(contains(end.err, "chmod 600 " + cluster.home() + "/.fleetrun/key"));
}

TEST_CASE("without a home for the key, the error names --key_file") {
  Cluster cluster(2);
  const std::string nowhere = cluster.shared() / "nowhere";
  cluster.set(0, "HOME", nowhere);
  cluster.start(0, {FAKE_WORKER});
  const ChildResult end = cluster.end_of(0);
  CHECK(end.code == 66);
  CHECK(end.err == "fleetrun: error: making " + nowhere +
                       "/.fleetrun: No such file or directory (errno 2)\n"
                       "  hint: --key_file names another file for the key of all nodes\n");
}

TEST_CASE("a key that is a FIFO is refused at once") {
  Cluster cluster(2);
  const std::string key = cluster.folder(0) + "/fifo";
  REQUIRE(::mkfifo(key.c_str(), 0600) == 0);
  cluster.start(0, {"--key_file=" + key, FAKE_WORKER});
  const ChildResult end = cluster.end_of(0, 20s);
  CHECK(end.code == 76);
  CHECK_MESSAGE(contains(end.err, key + " is not a file"), end.err);
}

TEST_CASE("nodes that share a home and start together agree on the key that one of them makes") {
  for (int i = 0; i < 5; ++i) {
    Cluster cluster(8);
    for (const ChildResult& end : cluster.run({FAKE_WORKER, "exit", "0"}))
      CHECK_MESSAGE(end.code == 0, end.err);
    struct stat facts {};
    REQUIRE(::stat((cluster.home() + "/.fleetrun/key").c_str(), &facts) == 0);
    CHECK((facts.st_mode & 0777) == 0600);
    CHECK(std::distance(std::filesystem::directory_iterator(cluster.home() + "/.fleetrun"), {}) == 1);
  }
}

TEST_CASE("when a node does not come, --join_timeout ends the others with 75 and its name") {
  Cluster cluster(3);
  cluster.start(0, {"--join_timeout=10", FAKE_WORKER});
  cluster.start(1, {"--join_timeout=10", FAKE_WORKER});
  for (const int node : {0, 1}) {
    const ChildResult end = cluster.end_of(node, 40s);
    CHECK(end.code == 75);
    CHECK_MESSAGE(contains(end.err, "node 2 (127.0.0.3) did not join within 10 s (--join_timeout)"), end.err);
  }
}

TEST_CASE("when the first node does not come, --join_timeout ends the others with 75") {
  Cluster cluster(2);
  cluster.start(1, {"--join_timeout=1", FAKE_WORKER});
  const ChildResult end = cluster.end_of(1, 10s);
  CHECK(end.code == 75);
  CHECK_MESSAGE(contains(end.err, "node 0 (127.0.0.1) at 127.0.0.1:" + std::to_string(cluster.port()) +
                                      " did not answer in 1 s (--join_timeout): Connection refused"),
                end.err);
}

TEST_CASE("--join_timeout=0 waits for nobody, and the error says what is missing") {
  Cluster cluster(2);
  const std::string first = "node 0 (127.0.0.1) at 127.0.0.1:" + std::to_string(cluster.port());
  for (const auto& [node, words] :
       {std::pair(0, std::string("error: node 1 (127.0.0.2) did not join within 0 s (--join_timeout)\n")),
        std::pair(1, "error: " + first + " did not answer in 0 s (--join_timeout): Connection refused")}) {
    cluster.start(node, {"--join_timeout=0", FAKE_WORKER});
    const ChildResult end = cluster.end_of(node, 10s);
    CHECK(end.code == 75);
    CHECK_MESSAGE(contains(end.err, words), end.err);
  }
}

TEST_CASE("something else that listens where the nodes meet is named by those who come to it") {
  Cluster cluster(2);
  const UniqueFd other = listen_at(cluster.address(0), cluster.port());
  const ChildResult first = [&] {
    cluster.start(0, {FAKE_WORKER});
    return cluster.end_of(0, 10s);
  }();
  CHECK(first.code == 75);
  CHECK_MESSAGE(contains(first.err, "the nodes cannot meet at 127.0.0.1:" + std::to_string(cluster.port()) +
                                        ": the port is taken by "),
                first.err);
  CHECK(contains(first.err, "hint: --master_port on all nodes chooses another port"));
  const std::string flag = "--master=127.0.0.1:" + std::to_string(cluster.port());
  cluster.start_exactly(0, {"--nnodes=2", flag, "--node_rank=0", FAKE_WORKER});
  const ChildResult by_master = cluster.end_of(0, 10s);
  CHECK(by_master.code == 75);
  CHECK(contains(by_master.err, "hint: --master=HOST:PORT on all nodes chooses another port"));
  cluster.start(1, {"--join_timeout=7", FAKE_WORKER});
  const ChildResult second = cluster.end_of(1, 20s);
  CHECK(second.code == 75);
  CHECK_MESSAGE(contains(second.err, "something listens there and does not answer as fleetrun does"),
                second.err);
}

TEST_CASE("Ctrl-C while waiting for others ends a node at once") {
  Cluster cluster(3);
  cluster.start(0, {FAKE_WORKER});
  REQUIRE(is_listening(cluster));
  cluster.start(1, {FAKE_WORKER});
  cluster.start(2, {FAKE_WORKER});
  for (const ChildResult& end : cluster.ends()) CHECK_MESSAGE(end.code == 0, end.err);
  cluster.start(1, {FAKE_WORKER});  // whose first node has not come
  REQUIRE(comes_true([&] { return cluster.left_on(1).size() == 2; }, within(10s)));
  cluster.send(1, SIGTERM);
  const ChildResult end = cluster.end_of(1, 5s);
  CHECK(end.code == 143);
  CHECK_MESSAGE(contains(end.err, "stopped by SIGTERM (15) before all nodes had joined"), end.err);
  CHECK(cluster.end_in_report(1) == "stopped by 15");
}

TEST_CASE("Ctrl-C on the first node while it waits ends those that wait with it, with its words") {
  Cluster cluster(3);
  cluster.start(0, {"--join_timeout=40", FAKE_WORKER});
  cluster.start(1, {"--join_timeout=40", FAKE_WORKER});
  REQUIRE(cluster.says(1, "waiting for node 2 (127.0.0.3)"));  // it has joined
  cluster.send(0, SIGINT);
  for (const int node : {0, 1}) {
    const ChildResult end = cluster.end_of(node, 5s);
    CHECK(end.code == 130);
    CHECK_MESSAGE(contains(end.err, "stopped by SIGINT (2) before all nodes had joined"), end.err);
    CHECK(cluster.end_in_report(node) == "stopped by 2");
  }
  CHECK(cluster.nothing_left());
}

TEST_CASE(
    "a node that waits for others ends when its front process is killed, and tells those that wait with it") {
  Cluster cluster(3);
  cluster.start(0, {"--join_timeout=40", FAKE_WORKER});
  cluster.start(1, {"--join_timeout=40", FAKE_WORKER});
  REQUIRE(cluster.says(1, "waiting for node 2 (127.0.0.3)"));
  cluster.send(0, SIGKILL);
  cluster.end_of(0, 5s);
  const ChildResult end = cluster.end_of(1, 10s);
  CHECK(end.code == 75);
  CHECK_MESSAGE(contains(end.err, "the front process of fleetrun is gone before all nodes had joined"),
                end.err);
  for (const int node : {0, 1}) {
    REQUIRE(cluster.nothing_left(5s));
    CHECK(cluster.report(node)["cause"] == "front_lost");
  }
}

TEST_CASE("a node that leaves while others are missing may come again") {
  Cluster cluster(3);
  cluster.start(0, {FAKE_WORKER});
  cluster.start(1, {FAKE_WORKER});
  REQUIRE(cluster.says(1, "waiting for node 2 (127.0.0.3)"));
  cluster.send(1, SIGINT);
  CHECK(cluster.end_of(1, 5s).code == 130);
  cluster.start(2, {FAKE_WORKER});
  cluster.start(1, {FAKE_WORKER});
  for (const ChildResult& end : cluster.ends()) CHECK_MESSAGE(end.code == 0, end.err);
}

TEST_CASE("a node that cannot take its port for metrics says so to the others before a rank starts") {
  Cluster cluster(2);
  const int number = free_port();
  const UniqueFd taken = listen_at("127.0.0.1", number);
  const std::string port = std::to_string(number);
  cluster.start(0, {FAKE_WORKER});
  cluster.start(1, {"--metrics_port=" + port, FAKE_WORKER});
  for (const ChildResult& end : cluster.ends(20s)) {
    CHECK(end.code != 0);
    CHECK_MESSAGE(contains(end.err, port), end.err);
  }
  CHECK_MESSAGE(contains(cluster.errors(0), "node 1 (127.0.0.2"), cluster.errors(0));
  CHECK_MESSAGE(!contains(cluster.errors(0), "lost node 1"), cluster.errors(0));
  CHECK(cluster.nothing_left());
}

TEST_CASE("garbage and 200 silent strangers where the nodes meet leave a run untouched") {
  Cluster cluster(2);
  cluster.start(0, {"--nproc_per_node=2", FAKE_WORKER, "pid", cluster.shared() / "%r", "await",
                    cluster.shared() / "end"});
  REQUIRE(is_listening(cluster));
  std::vector<std::unique_ptr<testing::Stranger>> strangers;
  strangers.reserve(200);
  for (int i = 0; i < 200; ++i) strangers.push_back(std::make_unique<testing::Stranger>(meeting_of(cluster)));
  for (const std::string_view bytes : {"GET / HTTP/1.1\r\n\r\n", "\xff\xff\xff\xff", "\x01\x00\x00\x00\x07"})
    testing::Stranger(meeting_of(cluster)).say(bytes);
  cluster.start(1, {"--nproc_per_node=2", FAKE_WORKER, "pid", cluster.shared() / "%r", "await",
                    cluster.shared() / "end"});
  for (const char* rank : {"0", "1", "2", "3"}) cluster.pid_in(rank);  // strangers are dropped after 5 s
  for (int i = 0; i < 50; ++i) {
    strangers.push_back(std::make_unique<testing::Stranger>(meeting_of(cluster)));
    strangers.back()->say(std::string(static_cast<std::size_t>(i) * 1000, static_cast<char>(i)));
  }
  cluster.shared().write("end", "");
  for (const ChildResult& end : cluster.ends()) CHECK_MESSAGE(end.code == 0, end.err);
}

}  // namespace
}  // namespace fleetrun::joining_test
