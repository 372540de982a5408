// N: what happens to the network between hosts. They are network namespaces of this machine.
#include <functional>
#include <optional>
#include <regex>

#include "e2e/faults/faults.h"
#include "e2e/namespaces.h"

namespace fleetrun {
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

TEST_CASE("N1: a node whose cable is pulled ends the run with 75, and who lost whom is told") {
  if (const auto missing = Namespaces::missing()) LEAVE_OUT(*missing);
  const Fault fault = {"cable", [](const Namespaces& network, int node) { network.pull_cable(node); },
                       kSilent};
  for (const Layout& layout : kLayouts) check_end(layout, fault);
}

TEST_CASE("N2: a network that swallows everything ends the run with 75, and who lost whom is told") {
  if (const auto missing = Namespaces::missing()) LEAVE_OUT(*missing);
  const Fault fault = {"drop", [](const Namespaces& network, int node) { network.drop_all(node); }, kSilent};
  for (const Layout& layout : kLayouts) check_end(layout, fault);
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
}  // namespace fleetrun
