// N: what happens to the network between hosts. They are network namespaces of this machine.
#include <arpa/inet.h>

#include <functional>
#include <iterator>
#include <optional>
#include <regex>
#include <sstream>

#include "e2e/faults/faults.h"
#include "e2e/namespaces.h"
#include "support/stranger.h"

namespace fleetrun::network_fault_test {
namespace {

// Its all-reduces take most of its time: whatever happens, happens in the midst of one.
const std::string kBigJob = R"({
  "model": {"name": "mlp", "hidden": [1024]},
  "data": {"train": {"format": "synthetic", "samples": 64, "shape": [1, 32, 32], "classes": 4}, "batch_size": 8},
  "optimizer": {"name": "sgd", "learning_rate": 0.001},
  "train": {"epochs": 100000000, "log_every": 1}
})";

// How long after the fault a run may last: 5 s until it is noticed, and what it takes to stop. Without a watch it
// would be minutes.
const auto kBound = within(15s);

struct Layout {
  int nodes, ranks;
  Words strategy;
};
const std::vector<Layout> kLayouts = {
    {2, 2, {}},
    {4, 4, {}},
    {2, 4, {"strategy.use_hierarchical_allreduce=true", "strategy.hierarchical_allreduce_inter_nranks=2"}},
    {4,
     4,
     {"strategy.use_hierarchical_allreduce=true", "strategy.hierarchical_allreduce_inter_nranks=2",
      "strategy.hierarchical_allreduce_algorithm=scatter"}},
};

struct Training {
  Training(const Namespaces& network, const Layout& layout, const std::string& job)
      : launch(network, layout.ranks) {
    launch.folder.write("job.json", job);
    Words words = {"job.json"};
    words.insert(words.end(), layout.strategy.begin(), layout.strategy.end());
    process.emplace(launch.command(words), launch.options());
    const std::string last = "log/workerlog." + std::to_string(layout.ranks - 1);
    REQUIRE(comes_true([&] { return contains(launch.folder.read(last), "[Epoch 2"); }, within(60s)));
  }

  const NodesLaunch launch;
  std::optional<ChildProcess> process;
};

struct Fault {
  std::string name;
  std::function<void(const Namespaces& network, int node)> happens;
  std::string words;  // of who lost the connection
};

// Between the last node and another one, whichever of the two tells it.
std::regex loss_of(const Layout& layout, const std::string& words) {
  std::string lost = "[";
  for (int rank = layout.ranks - layout.ranks / layout.nodes; rank < layout.ranks; ++rank)
    lost += std::to_string(rank);
  lost += "]";
  const std::string told_by_others = "lost the connection to rank " + lost + " on " +
                                     Namespaces::address(layout.nodes - 1) + ": (" + words + ")";
  const std::string told_by_itself =
      "rank " + lost + "(: .*:)? lost the connection to rank [0-9] on 10[.]77[.]0[.][0-9]: (" + words + ")";
  return std::regex(told_by_others + "|" + told_by_itself);
}

void check_end(const Layout& layout, const Fault& fault) {
  CAPTURE(fault.name);
  CAPTURE(layout.nodes);
  CAPTURE(layout.ranks);
  const Namespaces network(layout.nodes);
  Training training(network, layout, kBigJob);
  fault.happens(network, layout.nodes - 1);
  const auto start = std::chrono::steady_clock::now();
  const ChildResult result = training.process->wait(kBound + 30s);
  const auto took = std::chrono::steady_clock::now() - start;
  CHECK(took < kBound);
  CHECK(result.code == 75);
  CHECK_MESSAGE(std::regex_search(result.err, loss_of(layout, fault.words)), result.err);
  const auto report = training.launch.report();
  CHECK(report["exit_code"] == 75);
  CHECK_MESSAGE(std::regex_search(report["last_lines"].dump(), loss_of(layout, fault.words)), report.dump(2));
  if (!layout.strategy.empty()) return;  // whose groups notice the end of their leader
  for (int rank = 0; rank < layout.ranks; ++rank) {
    const std::string log = training.launch.folder.read("log/workerlog." + std::to_string(rank));
    if (contains(log, "error: ")) CHECK_MESSAGE(std::regex_search(log, loss_of(layout, fault.words)), log);
  }
}

const std::string kSilent = "no answer for 5 s";

TEST_CASE("N1: a node whose cable is pulled ends the run with 75, and who lost whom is reported") {
  if (const auto missing = Namespaces::missing()) LEAVE_OUT(*missing);
  const Fault fault = {"cable", [](const Namespaces& network, int node) { network.pull_cable(node); },
                       kSilent};
  for (const Layout& layout : kLayouts) check_end(layout, fault);
}

TEST_CASE("N2: a network that swallows everything ends the run with 75, and who lost whom is reported") {
  if (const auto missing = Namespaces::missing()) LEAVE_OUT(*missing);
  const Fault fault = {"drop", [](const Namespaces& network, int node) { network.drop_all(node); }, kSilent};
  for (const Layout& layout : kLayouts) check_end(layout, fault);
}

TEST_CASE("N3: a network that swallows one direction is lost for both sides") {
  if (const auto missing = Namespaces::missing()) LEAVE_OUT(*missing);
  const Fault fault = {"one way", [](const Namespaces& network, int node) { network.drop_one_way(node); },
                       kSilent};
  check_end(kLayouts[1], fault);
}

TEST_CASE("N7: connections that are reset in the midst of an all-reduce end the run with 75") {
  if (const auto missing = Namespaces::missing()) LEAVE_OUT(*missing);
  const Fault fault = {"reset", [](const Namespaces& network, int node) { network.reset_all(node); },
                       "the connection was reset|it closed the connection"};
  for (const Layout& layout : kLayouts) check_end(layout, fault);
}

TEST_CASE("N4: 5 packets of 100 are lost, and training goes on") {
  if (const auto missing = Namespaces::missing()) LEAVE_OUT(*missing);
  const Namespaces network(2);
  Training training(network, kLayouts[0], kEndlessJob);
  network.lose(1, 5);
  const auto bytes = [&] { return training.launch.folder.read("log/workerlog.1").size(); };
  const std::size_t before = bytes();
  CHECK(comes_true([&] { return bytes() > before + 20000; }, within(60s)));  // some hundred steps
  CHECK(is_alive(training.process->pid()));
  training.process->send(SIGTERM);
  CHECK(training.process->wait().code == 143);
}

// Where somebody listens in the network namespace of this thread.
std::vector<Endpoint> listeners() {
  constexpr const char* kListening = "0A";
  std::vector<Endpoint> found;
  std::ifstream table("/proc/thread-self/net/tcp");
  std::string line;
  std::getline(table, line);  // the names of the columns
  for (std::string number, local, remote, state; std::getline(table, line);) {
    std::istringstream(line) >> number >> local >> remote >> state;
    const auto colon = local.find(':');
    if (state != kListening || colon == std::string::npos) continue;
    const in_addr address{static_cast<in_addr_t>(std::stoul(local.substr(0, colon), nullptr, 16))};
    char host[INET_ADDRSTRLEN] = "";
    ::inet_ntop(AF_INET, &address, host, sizeof host);
    found.push_back({host, static_cast<std::uint16_t>(std::stoul(local.substr(colon + 1), nullptr, 16))});
  }
  return found;
}

TEST_CASE("N11, N12, N13: strangers on every port of a training, silent or not, change nothing") {
  if (const auto missing = Namespaces::missing()) LEAVE_OUT(*missing);
  const Namespaces network(2);
  Training training(network, kLayouts[0], kEndlessJob);
  const auto bytes = [&] { return training.launch.folder.read("log/workerlog.1").size(); };
  const std::string words[] = {"", "x", "GET / HTTP/1.1\r\nHost: x\r\n\r\n", "\x16\x03\x01\x02",
                               "\xff\xff\xff\xff"};
  std::vector<testing::Stranger> strangers;  // they stay
  bool all_interfaces = false;
  for (int node = 0; node < 2; ++node)
    network.run_in(node, [&] {
      for (const Endpoint& endpoint : listeners()) {
        all_interfaces = all_interfaces || endpoint.host == "0.0.0.0";
        for (int i = 0; i < 100; ++i) {
          strangers.emplace_back(endpoint);
          strangers.back().say(words[static_cast<std::size_t>(i) % std::size(words)]);
        }
      }
    });
  CHECK(strangers.size() >= 100);  // the store's port at least
  CHECK_FALSE(all_interfaces);
  const std::size_t before = bytes();
  CHECK(comes_true([&] { return bytes() > before + 20000; }, within(60s)));
  training.process->send(SIGTERM);
  const ChildResult result = training.process->wait();
  CHECK(result.code == 143);
  CHECK(contains(result.err, "connections without a valid handshake"));
}

TEST_CASE("N2: a rank that is stopped for longer than a silent network may be goes on when it is continued") {
  const Launch launch;
  launch.folder.write("job.json", kBigJob);
  ChildOptions options = launch.options();
  options.environment["FLEETRUN_COMM_BACKEND"] = "gloo";
  ChildProcess process(
      {FLEETRUN_BINARY, "--nproc_per_node=2", "--device=cpu", "--hang_timeout=0", "--grace=0.2", "job.json"},
      options);
  const auto bytes = [&] { return launch.folder.read("log/workerlog.0").size(); };
  REQUIRE(
      comes_true([&] { return contains(launch.folder.read("log/workerlog.1"), "[Epoch 2"); }, within(60s)));
  const pid_t worker = worker_of(launch, 1);
  ::kill(worker, SIGSTOP);
  CHECK_FALSE(comes_true([&] { return !is_alive(process.pid()); }, 8s));
  const std::size_t before = bytes();
  ::kill(worker, SIGCONT);
  CHECK(comes_true([&] { return bytes() > before + 200; }, within(60s)));
  process.send(SIGTERM);
  CHECK(process.wait().code == 143);
}

}  // namespace
}  // namespace fleetrun::network_fault_test
