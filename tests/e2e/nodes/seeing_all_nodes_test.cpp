// What people see of the ranks of all nodes: on the first node all of them, on each other node its own.
#include "e2e/nodes/cluster.h"
#include "e2e/nodes/follower.h"

namespace fleetrun::seeing_all_nodes_test {
namespace {

// One of fleetrun's commands, typed on a node.
Words command_on(const Cluster& cluster, int node, const std::string& command, const Words& flags) {
  Words words = {FLEETRUN_BINARY, command, "--log_dir=" + cluster.folder(node) + "/log"};
  words.insert(words.end(), flags.begin(), flags.end());
  return words;
}
ChildResult ask(const Cluster& cluster, int node, const std::string& command, const Words& flags = {}) {
  return run_child(command_on(cluster, node, command, flags));
}

nlohmann::json ranks_on(const Cluster& cluster, int node) {
  return nlohmann::json::parse(ask(cluster, node, "ps", {"--json"}).out)["ranks"];
}

// Three nodes with two ranks each: every rank says hello, then waits for the file "go", then says goodbye.
void start_three(Cluster& cluster, const Words& flags_of_first = {}) {
  const std::string go = cluster.shared() / "go", pid = cluster.shared() / "%r";
  for (int node = 0; node < cluster.nodes(); ++node) {
    Words words = {"--nproc_per_node=2"};
    if (node == 0) words.insert(words.end(), flags_of_first.begin(), flags_of_first.end());
    words.insert(words.end(), {FAKE_WORKER, "on-usr1", "got USR1\n", "print", "hello", "pid", pid, "await",
                               go, "print", "goodbye"});
    cluster.start(node, words);
  }
  for (int rank = 0; rank < 2 * cluster.nodes(); ++rank) cluster.pid_in(std::to_string(rank));
}

void end_well(Cluster& cluster) {
  cluster.shared().write("go", "");
  for (const ChildResult& end : cluster.ends()) CHECK_MESSAGE(end.code == 0, end.err);
  CHECK(cluster.nothing_left());
}

TEST_CASE("fleetrun ps on the first node lists the ranks of all nodes, on another node its own") {
  Cluster cluster(3);
  start_three(cluster);
  const auto all = ranks_on(cluster, 0), own = ranks_on(cluster, 2);
  REQUIRE(all.size() == 6);
  for (std::size_t rank = 0; rank < 6; ++rank) {
    CHECK(all[rank]["rank"] == rank);
    CHECK(all[rank]["pid"] == cluster.pid_in(std::to_string(rank)));
    CHECK(all[rank]["host"] == ranks_on(cluster, 0)[0]["host"]);
  }
  REQUIRE(own.size() == 2);
  CHECK(own[0]["rank"] == 4);
  CHECK(contains(ask(cluster, 0, "ps").out, "STEP  HOST\n"));
  CHECK(contains(ask(cluster, 2, "ps").out, "STEP\n"));
  end_well(cluster);
}

TEST_CASE("fleetrun signal on the first node reaches the ranks of all nodes, on another node its own") {
  Cluster cluster(3);
  start_three(cluster);
  CHECK(ask(cluster, 0, "signal", {"USR1", "--rank=1,2,5"}).out == "sent to ranks 1, 2, 5\n");
  for (const auto& [node, local] : {std::pair(0, 1), std::pair(1, 0), std::pair(2, 1)})
    CHECK(
        comes_true([&, n = node, l = local] { return contains(cluster.log(n, l), "got USR1"); }, within(5s)));
  CHECK(ask(cluster, 1, "signal", {"USR1"}).out == "sent to ranks 2, 3\n");
  CHECK_FALSE(contains(cluster.log(0, 0), "got USR1"));
  const ChildResult wrong = ask(cluster, 0, "signal", {"USR1", "--rank=6"});
  CHECK(wrong.code == 2);
  CHECK(contains(wrong.err, "the run has the ranks 0 to 5, not 6"));
  const ChildResult elsewhere = ask(cluster, 1, "signal", {"USR1", "--rank=0"});
  CHECK(elsewhere.code == 2);
  CHECK_MESSAGE(contains(elsewhere.err, "this node has the ranks 2 to 3, not 0; node 0 (127.0.0.1, "),
                elsewhere.err);
  end_well(cluster);
}

TEST_CASE("a signal that ends a rank names who sent it, on every node") {
  Cluster cluster(2);
  start_three(cluster);
  CHECK(ask(cluster, 0, "signal", {"KILL", "--rank=3"}).out == "sent to rank 3\n");
  for (const ChildResult& end : cluster.ends()) {
    CHECK(end.code == 137);
    CHECK_MESSAGE(contains(cause_on(end), " on node 0 (127.0.0.1) sent"), end.err);
  }
}

TEST_CASE("fleetrun logs on the first node shows the log of any rank, by its number in the run") {
  Cluster cluster(3);
  start_three(cluster);
  CHECK(ask(cluster, 0, "logs", {"--rank=5"}).out == "hello\n");
  CHECK(ask(cluster, 0, "logs", {"--rank=0,2,5"}).out == "[0] hello\n[2] hello\n[5] hello\n");
  CHECK(ask(cluster, 0, "logs").out == "[0] hello\n[1] hello\n");
  CHECK(ask(cluster, 0, "logs", {"--rank=5", "--grep=nothing"}).out.empty());
  CHECK(ask(cluster, 1, "logs", {"--rank=3"}).out == "hello\n");
  CHECK(ask(cluster, 1, "logs").out == "[2] hello\n[3] hello\n");
  const ChildResult wrong = ask(cluster, 0, "logs", {"--rank=6"});
  CHECK(wrong.code == 2);
  CHECK(contains(wrong.err, "--rank lists rank 6, the run has the ranks 0 to 5"));
  const ChildResult elsewhere = ask(cluster, 1, "logs", {"--rank=0"});
  CHECK(elsewhere.code == 2);
  CHECK_MESSAGE(
      contains(elsewhere.err, "the log of rank 0 is " + cluster.folder(0) + "/log/workerlog.0 on node 0"),
      elsewhere.err);
  end_well(cluster);
  const ChildResult over = ask(cluster, 0, "logs", {"--rank=5"});
  CHECK(over.code == 66);
  CHECK_MESSAGE(contains(over.err, "the run is over; the log of rank 5 is " + cluster.folder(2) +
                                       "/log/workerlog.1 on node 2 (127.0.0.3, "),
                over.err);
  CHECK(ask(cluster, 2, "logs", {"--rank=5"}).out == "hello\ngoodbye\n");
}

TEST_CASE("fleetrun logs -f follows ranks of other nodes to their last words") {
  Cluster cluster(3);
  start_three(cluster);
  Words words = {"/bin/sh", "-c", "exec \"$@\" > \"$0\"", cluster.shared() / "followed"};
  for (const std::string& word : command_on(cluster, 0, "logs", {"--rank=1,3,5", "-f"}))
    words.push_back(word);
  ChildProcess follower(words);
  const auto followed = [&] {
    return cluster.shared().has("followed") ? cluster.shared().read("followed") : "";
  };
  REQUIRE(
      comes_true([&] { return contains(followed(), "[3] hello\n") && contains(followed(), "[5] hello\n"); },
                 within(10s)));
  CHECK(ask(cluster, 0, "signal", {"USR1", "--rank=5"}).code == 0);
  end_well(cluster);
  const ChildResult end = follower.wait(within(10s));
  CHECK_MESSAGE(end.code == 0, end.err);
  CHECK_MESSAGE(end.err.empty(), end.err);
  for (const char* line :
       {"[1] hello\n", "[5] got USR1\n", "[1] goodbye\n", "[3] goodbye\n", "[5] goodbye\n"})
    CHECK_MESSAGE(contains(followed(), line), followed());
}

// A node whose fleetrun waits for others: what its commands say.
void check_commands_while_waiting(const Cluster& cluster, int node, const std::string& wait) {
  CAPTURE(node);
  REQUIRE(
      comes_true([&] { return contains(ask(cluster, node, "ps").out, "waiting for " + wait); }, within(10s)));
  CHECK(contains(ask(cluster, node, "ps").out, " s\nno rank runs yet: waiting for " + wait));
  const auto json = nlohmann::json::parse(ask(cluster, node, "ps", {"--json"}).out);
  CHECK(json["ranks"].empty());
  CHECK(contains(json["waiting"].get<std::string>(), "waiting for " + wait));
  const ChildResult signal = ask(cluster, node, "signal", {"USR1"});
  CHECK(signal.code == 75);
  CHECK_MESSAGE(contains(signal.err, "fleetrun: error: no rank runs yet: waiting for " + wait), signal.err);
}

TEST_CASE(
    "a node that waits for others names them in ps and signal, and stop on the first node ends all that wait") {
  Cluster cluster(3);
  cluster.start(0, {FAKE_WORKER});
  check_commands_while_waiting(cluster, 0, "node 1 (127.0.0.2), node 2 (127.0.0.3)");
  cluster.start(1, {FAKE_WORKER});
  for (const int node : {0, 1}) check_commands_while_waiting(cluster, node, "node 2 (127.0.0.3)");
  CHECK(ask(cluster, 0, "stop").out.starts_with("stopped default-"));
  for (const int node : {0, 1}) {
    const ChildResult end = cluster.end_of(node, 10s);
    CHECK(end.code == 143);
    CHECK_MESSAGE(contains(end.err, "stopped by SIGTERM (15) before all nodes had joined"), end.err);
    CHECK(cluster.end_in_report(node) == "stopped by 15");
  }
  CHECK(cluster.nothing_left());
}

TEST_CASE("a node that waits for the first one says where, and stop ends only that node") {
  Cluster cluster(2);
  cluster.start(1, {FAKE_WORKER, "exit", "0"});
  check_commands_while_waiting(cluster, 1,
                               "node 0 (127.0.0.1) at 127.0.0.1:" + std::to_string(cluster.port()) + ": ");
  CHECK(ask(cluster, 1, "stop").out.starts_with("stopped default-"));
  CHECK(cluster.end_of(1, 10s).code == 143);
  for (const ChildResult& end : cluster.run({FAKE_WORKER, "exit", "0"}))
    CHECK_MESSAGE(end.code == 0, end.err);
}

TEST_CASE(
    "in the pause before a restart, ps and logs show the attempt that has ended, and no rank is waited for") {
  Cluster cluster(2);
  const std::string here = cluster.shared() / "here.";
  const std::string script = "trap '' TERM; echo hello; : > " + here +
                             "$RANK; [ $TORCHELASTIC_RESTART_COUNT = 1 ] && exit 0; until [ -e " + here +
                             "0 ] && [ -e " + here +
                             "1 ]; do sleep 0.01; done; exit 7";  // also when the other rank was first
  cluster.start(
      {"--nproc_per_node=1", "--max_restart=1", "--restart_delay=8", "--", "/bin/sh", "-c", script});
  for (const int each : {0, 1}) REQUIRE(cluster.says(each, "restart 1 of at most 1 in 8 s"));
  for (const auto& rank : ranks_on(cluster, 0)) CHECK(contains(rank["state"].dump(), "exited with code 7"));
  CHECK(ask(cluster, 0, "logs", {"--rank=1"}).out == "hello\n");
  for (const ChildResult& end : cluster.ends()) {
    CHECK_MESSAGE(end.code == 0, end.err);
    CHECK_MESSAGE(!contains(end.err, "waiting for"), end.err);
  }
}

TEST_CASE("after a restart, the console and fleetrun logs -f go on with the log of the next attempt") {
  Cluster cluster(2);
  const std::string stay = cluster.shared() / "stay";
  const std::string script =
      "[ $RANK$TORCHELASTIC_RESTART_COUNT = 00 ] && exec sleep 100; echo attempt $TORCHELASTIC_RESTART_COUNT; while [ ! -e " +
      stay +
      "$TORCHELASTIC_RESTART_COUNT ]; do sleep 0.05; done; echo leaves; [ "
      "$TORCHELASTIC_RESTART_COUNT = 1 ]";
  cluster.start({"--max_restart=1", "--restart_delay=0.5", "--console=1", "--", "/bin/sh", "-c", script});
  REQUIRE(comes_true([&] { return contains(cluster.log(1, 0), "attempt"); }, within(20s)));
  Follower follower(cluster, 0, "shown", {"--rank=1"});
  REQUIRE(follower.shows("attempt 0\n"));
  cluster.shared().write("stay0", "");
  REQUIRE(comes_true(
      [&] {
        return std::filesystem::exists(cluster.folder(1) + "/log/attempt-0") &&
               contains(cluster.log(1, 0), "attempt");
      },
      within(20s)));
  cluster.shared().write("stay1", "");
  const auto ends = cluster.ends();
  for (const ChildResult& end : ends) CHECK_MESSAGE(end.code == 0, end.err);
  const std::string wanted = "attempt 0\nleaves\nattempt 1\nleaves\n";
  CHECK(follower.end() == 0);
  CHECK(follower.shown() == wanted);
  CHECK_MESSAGE(ends[0].out.ends_with("\n" + wanted), ends[0].out);
}

TEST_CASE("--console on the first node shows ranks of other nodes, up to their last words") {
  Cluster cluster(3);
  start_three(cluster, {"--console=0,3,5"});
  cluster.shared().write("go", "");
  const auto ends = cluster.ends();
  for (const ChildResult& end : ends) CHECK_MESSAGE(end.code == 0, end.err);
  for (const char* line :
       {"[0] hello\n", "[3] hello\n", "[5] hello\n", "[0] goodbye\n", "[3] goodbye\n", "[5] goodbye\n"})
    CHECK_MESSAGE(contains(ends[0].out, line), ends[0].out);
  for (const char* other : {"[1]", "[2]", "[4]"}) CHECK_FALSE(contains(ends[0].out, other));
  CHECK(contains(ends[1].out, "hello\ngoodbye\n"));  // of its first rank, as by default
}

TEST_CASE("a rank that ends at once is seen on the console of the first node, with what it wrote to stderr") {
  Cluster cluster(2);
  const Words program = {"--", "/bin/sh", "-c",
                         R"(printf '\033]0;title\007 word %s' $RANK; echo oh no >&2; exit $RANK)"};
  for (const int node : {0, 1}) {
    Words words = {"--console=1"};
    words.insert(words.end(), program.begin(), program.end());
    cluster.start(node, words);
  }
  const auto ends = cluster.ends();
  for (const ChildResult& end : ends) CHECK(end.code == 1);
  CHECK_MESSAGE(contains(ends[0].out, " word 1oh no\n"), ends[0].out);
  CHECK_FALSE(contains(ends[0].out, "\x1b"));
}

TEST_CASE("--console with a rank that the run does not have ends the run, and every node says why") {
  Cluster cluster(2);
  cluster.start(0, {"--console=2", FAKE_WORKER, "sleep", "100"});
  cluster.start(1, {FAKE_WORKER, "sleep", "100"});
  for (const ChildResult& end : cluster.ends()) {
    CHECK(end.code == 2);
    CHECK_MESSAGE(contains(end.err, "--console lists rank 2, the run has the ranks 0 to 1"), end.err);
  }
}

TEST_CASE("the metrics of the first node are those of all ranks") {
  Cluster cluster(3);
  start_three(cluster, {"--metrics_file=metrics.prom"});
  const auto metrics = [&] { return cluster.read(0, "metrics.prom"); };
  CHECK(comes_true(
      [&] {
        for (const char* rank : {"0", "1", "2", "3", "4", "5"})
          if (!contains(metrics(), std::string("fleetrun_worker_up{rank=\"") + rank + "\"} 1\n"))
            return false;
        return true;
      },
      within(15s)));
  CHECK(contains(metrics(), "fleetrun_workers 6\n"));
  end_well(cluster);
  CHECK(contains(metrics(), "fleetrun_worker_up{rank=\"5\"} 0\n"));
  CHECK(contains(metrics(), "fleetrun_worker_exit_code{rank=\"5\"} 0\n"));
}

TEST_CASE("while a node hangs, fleetrun ps and signal answer for the others in time") {
  Cluster cluster(3);
  start_three(cluster);
  const pid_t middle = parent_of(cluster.pid_in("2"));
  ::kill(middle, SIGSTOP);
  ChildProcess signal(command_on(cluster, 0, "signal", {"USR1", "--rank=0-3"}));
  const ChildResult ps = ask(cluster, 0, "ps", {"--json"});
  const ChildResult sent = signal.wait(within(10s));
  ::kill(middle, SIGCONT);
  CHECK(ps.seconds < seconds_within(3s));
  const auto ranks = nlohmann::json::parse(ps.out)["ranks"];
  REQUIRE(ranks.size() == 6);
  for (const std::size_t rank : {2, 3}) CHECK(ranks[rank]["state"] == "no answer");
  for (const std::size_t rank : {0, 1, 4, 5})
    CHECK(ranks[rank]["pid"] == cluster.pid_in(std::to_string(rank)));
  CHECK(sent.out == "sent to ranks 0, 1\n");
  CHECK_MESSAGE(contains(sent.err, "the nodes of ranks 2, 3 did not answer"), sent.err);
  // Its ranks get SIGCONT, too, which LeakSanitizer does not survive at their ends: only then may they end.
  REQUIRE(comes_true([&] { return ranks_on(cluster, 0)[2]["state"] != "no answer"; }, within(10s)));
  end_well(cluster);
}

TEST_CASE("a flood of lines that the first node follows holds up neither the rank nor the run") {
  Cluster cluster(2);
  const std::string writes =
      "head -c 200000000 /dev/zero | tr '\\0' 'x' | fold -w 99; printf '\\nwritten\\n'";
  const std::string script = "[ $RANK = 0 ] && exec sleep 1; " + writes + "; sleep 2";
  cluster.start(0, {"--console=1", "--", "/bin/sh", "-c", script});
  cluster.start(1, {"--console=none", "--", "/bin/sh", "-c", script});
  REQUIRE(comes_true([&] { return std::filesystem::exists(cluster.folder(0) + "/log/workerlog.0"); },
                     within(10s)));
  ChildProcess follower(command_on(cluster, 0, "logs", {"--rank=1", "-f", "--grep=written"}));
  const auto ends = cluster.ends();
  for (const ChildResult& end : ends) CHECK_MESSAGE(end.code == 0, end.err);
  CHECK(std::filesystem::file_size(cluster.folder(1) + "/log/workerlog.0") > 200'000'000);
  CHECK_MESSAGE(contains(ends[0].err, " of the log of rank 1, which grows faster than it can be shown"),
                ends[0].err);
  CHECK(contains(ends[0].out, "\nwritten\n"));
  CHECK(follower.wait(within(10s)).code == 0);
}

TEST_CASE("over a slow network, a log that is followed delays no sign of life so long that the run ends") {
  if (const auto missing = Namespaces::missing()) LEAVE_OUT(*missing);
  const Namespaces network(2);
  const Words shape = {"tc",   "qdisc", "add",   "dev", "eth0",    "root", "tbf",
                       "rate", "1mbit", "burst", "4kb", "latency", "400ms"};
  if (run_child(network.in(1, shape)).code != 0) LEAVE_OUT("no tc with a token bucket here");
  Cluster cluster(2, &network);
  const std::string script = "[ $RANK = 1 ] && head -c 20000000 /dev/urandom; exec sleep 7";
  cluster.start({"--console=1", "--", "/bin/sh", "-c", script});
  REQUIRE(comes_true([&] { return std::filesystem::exists(cluster.folder(0) + "/log/workerlog.0"); },
                     within(10s)));
  ChildProcess follower(command_on(cluster, 0, "logs", {"--rank=1", "-f", "--grep=never"}));
  for (const ChildResult& end : cluster.ends()) CHECK_MESSAGE(end.code == 0, end.err);
  const ChildResult followed = follower.wait(within(10s));
  CHECK_MESSAGE(followed.code == 0, followed.err);
  CHECK(std::filesystem::file_size(cluster.folder(1) + "/log/workerlog.0") == 20'000'000);
}

}  // namespace
}  // namespace fleetrun::seeing_all_nodes_test
