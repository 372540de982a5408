// Random schedules of faults of an elastic training in four network namespaces: scripts/soak elastic runs many.
#include <functional>
#include <random>

#include "e2e/nodes/cluster.h"
#include "e2e/peers.h"
#include "support/soak.h"

namespace fleetrun::elastic_soak_test {
namespace {

constexpr int kNodes = 4, kLeast = 2, kEpochs = 1200, kSamples = 960, kBatch = 16;
constexpr auto kPatience = 240s;  // on a machine with other work, four nodes train for more than a minute

const std::string kJob = R"({
  "model": {"name": "mlp", "hidden": [64]},
  "data": {"train": {"format": "synthetic", "samples": 960, "shape": [1, 16, 16], "classes": 4}, "batch_size": 16, "uneven": "drop"},
  "optimizer": {"name": "momentum", "learning_rate": 0.001},
  "train": {"epochs": 1200, "log_every": 100000, "threads": 1},
  "checkpoint": {"dir": "checkpoints", "every_steps": 500}
})";

class Schedule {
 public:
  Schedule(const Namespaces& network, unsigned seed)
      : network_(network), random_(seed), cluster_(kNodes, &network), spares_(pick(0, 1)) {}

  void play() {
    for (int node = 0; node < kNodes; ++node) start(node);
    REQUIRE(comes_true([&] { return has_checkpoint(); }, within(Cluster::kLimit)));
    for (int faults = pick(1, 3); faults > 0 && !is_over(); --faults) {
      wait(pick(100, 2500));
      fault();
    }
    check_end();
  }

  const std::string& story() const { return story_; }
  bool trained() const { return trained_; }
  // Of each stand-still after which fewer nodes went on, or a spare took over.
  const std::vector<nlohmann::json>& stand_stills() const { return stand_stills_; }

 private:
  int pick(int least, int most) { return std::uniform_int_distribution<int>(least, most)(random_); }
  std::string logs_of(int node) const {
    const int life = life_.at(node);
    return life == 1 ? "log" : "log-" + std::to_string(life);
  }
  // A node that is not needed any more ends with the run, as all others do.
  bool is_over() const {
    return std::ranges::any_of(runs_, [&](const auto& node) {
      return node.second && std::filesystem::exists(cluster_.folder(node.first) + "/" + logs_of(node.first) +
                                                    "/report.json");
    });
  }
  bool has_checkpoint() const {
    std::error_code none;
    for (const auto& entry :
         std::filesystem::directory_iterator(cluster_.shared() / "output/checkpoints", none))
      if (contains(entry.path().filename(), "-step-")) return true;
    return false;
  }
  // Random moments are what this test is about.
  void wait(int milliseconds) const {
    (void)comes_true([&] { return is_over(); }, within(std::chrono::milliseconds(milliseconds)));
  }

  void start(int node) {
    std::ofstream(cluster_.folder(node) + "/job.json") << kJob;
    ++life_[node];
    Words words = {"--nproc_per_node=1", "--device=cpu", "--max_restart=50",
                   "--join_timeout=20",  "--grace=2",    "--log_dir=" + logs_of(node)};
    words.push_back("--nnodes=" + std::to_string(kLeast) + ":4");
    if (spares_ > 0) words.emplace_back("--spares=1");
    words.emplace_back("job.json");
    words.push_back("output.dir=" + cluster_.shared() / "output");  // as on a shared disk
    cluster_.start(node, words);
    runs_[node] = true;
  }

  // At least two nodes stay. The node that coordinates, which is the first one that runs, often gets the fault.
  void fault() {
    std::vector<int> candidates;
    for (int node = 0; node < kNodes; ++node)
      if (runs_[node]) candidates.push_back(node);
    if (std::ssize(candidates) <= kLeast) return;
    const int last = static_cast<int>(candidates.size()) - 1;
    const int node = candidates[static_cast<std::size_t>(pick(0, 2) == 0 ? 0 : pick(0, last))];
    pick(0, 1) == 0 ? kill(node) : cut_off(node);
    runs_[node] = false;
    if (pick(0, 2) == 0) return;
    wait(pick(0, 2000));
    if (is_over()) return;
    story_ += "; node " + std::to_string(node) + " starts again";
    start(node);
  }

  void kill(int node) {
    story_ += "; node " + std::to_string(node) + " is killed";
    cluster_.kill(node);
    CHECK(cluster_.end_of(node).code == 137);
  }

  void cut_off(int node) {
    story_ += "; node " + std::to_string(node) + " loses its link";
    network_.pull_cable(node);
    const int code = cluster_.end_of(node, 30s).code;
    CHECK((code == 75 ||
           (code == 0 && is_finished(node))));  // on a fast machine the training may just have ended
    network_.plug_cable(node);
  }

  // The run trains to its end, unless so many nodes were lost at a time that the others must not go on.
  void check_end() {
    std::optional<int> first;
    std::string ends;
    bool may_end = false;
    for (int node = 0; node < kNodes; ++node) {
      if (!runs_[node]) continue;
      const ChildResult end = cluster_.end_of(node, kPatience);
      const bool came_too_late = life_[node] > 1 && end.code != 0 &&
                                 (contains(end.err, "did not answer") || contains(end.err, "did not join") ||
                                  contains(end.err, "joined already"));
      const bool is_part = contains(end.err, "because the others may go on") ||
                           contains(end.err, "no other node of the run took over");
      may_end = may_end || is_part;
      CHECK_MESSAGE((end.code == 0 || came_too_late || (end.code == 75 && is_part)), "node " << node << ":\n"
                                                                                             << end.err);
      ends += end.err;
      if (end.code != 0 || !is_finished(node)) continue;
      trained_ = true;
      if (report_of(node).contains("train")) first = node;
    }
    CHECK(cluster_.nothing_left());
    if (trained_ && !first) {
      story_ += "; the node of rank 0 is killed after the last step";
      return;
    }
    if (!trained_) {
      story_ += "; the run ends";
      CHECK_MESSAGE(may_end, ends);
      return;
    }
    const auto report = report_of(*first);
    const int world = report["train"]["world_size"];
    CHECK(report["cause"] == "finished");
    CHECK(report["train"]["epochs"] == kEpochs);
    CHECK(report["train"]["steps"] == kEpochs * (kSamples / (kBatch * world)));
    for (const auto& one : report["stand_stills"])
      if (one["detection_s"] > 0) stand_stills_.push_back(one);
  }

  bool is_finished(int node) const { return report_of(node)["cause"] == "finished"; }
  nlohmann::json report_of(int node) const {
    return nlohmann::json::parse(cluster_.read(node, logs_of(node) + "/report.json"));
  }

  const Namespaces& network_;
  std::mt19937 random_;
  Cluster cluster_;
  const int spares_;
  std::map<int, bool> runs_;
  std::map<int, int> life_;
  std::string story_;
  bool trained_ = false;
  std::vector<nlohmann::json> stand_stills_;
};

double median(std::vector<double> values) {
  std::ranges::sort(values);
  return values.empty() ? 0 : values[values.size() / 2];
}

TEST_CASE("an elastic training under random faults of its nodes does all its epochs") {
  if (const auto missing = Namespaces::missing()) LEAVE_OUT(*missing);
  const Namespaces network(kNodes);
  const std::array<const char*, 7> parts = {"detection_s", "stop_s", "pause_s",     "join_s",
                                            "start_s",     "load_s", "first_step_s"};
  std::map<std::string, std::vector<double>> seconds;
  const int schedules = testing::soak_count(1);
  int trained = 0;
  for (int seed = 1; seed <= schedules; ++seed) {
    CAPTURE(seed);
    Schedule schedule(network, static_cast<unsigned>(seed));
    schedule.play();
    trained += schedule.trained() ? 1 : 0;
    if (schedules > 1) MESSAGE("schedule ", seed, schedule.story());
    for (const auto& one : schedule.stand_stills()) {
      CHECK(one["detection_s"] < 6);
      if (!one.contains("first_step_s")) continue;  // another fault came before the first step
      for (const char* part : parts) seconds[part].push_back(one[part]);
      seconds["stand-still without detection and load"].push_back(
          one["seconds"].get<double>() - one["detection_s"].get<double>() - one["load_s"].get<double>());
    }
  }
  MESSAGE(trained, " of ", schedules,
          " runs trained to the end; the others ended because too few nodes were left");
  CHECK(2 * trained > schedules);
  MESSAGE("medians of ", seconds["load_s"].size(), " stand-stills after the loss of a node");
  for (const auto& [part, values] : seconds) MESSAGE(part, ": ", median(values));
}

// A rank of a script, which fails, as ranks of a training do, when another one is gone.
const char* const kScript =
    "touch $SHARED/$WORLD_SIZE.$RANK; while [ ! -e $SHARED/go ]; do "
    "[ $WORLD_SIZE = 4 ] && [ -e $SHARED/lost ] && exit 1; sleep 0.05; done";

bool all_run(const Cluster& cluster, int world, std::chrono::milliseconds limit) {
  return comes_true(
      [&] {
        for (int rank = 0; rank < world; ++rank)
          if (!cluster.shared().has(std::to_string(world) + "." + std::to_string(rank))) return false;
        return true;
      },
      within(limit));
}

// From the death of one of four nodes until the ranks of the others run again.
double seconds_after_a_death(Cluster& cluster, const std::function<Words(int node)>& launcher_words) {
  for (int node = 0; node < kNodes; ++node) {
    cluster.set(node, "SHARED", cluster.shared() / "");
    Words words = launcher_words(node);
    for (const char* word : {"/bin/sh", "-c", kScript}) words.emplace_back(word);
    cluster.start_exactly(node, words);
  }
  REQUIRE(all_run(cluster, kNodes, 60s));
  const auto start = std::chrono::steady_clock::now();
  cluster.kill(3);
  cluster.shared().write("lost", "");
  CHECK(all_run(cluster, kNodes - 1, 120s));
  const std::chrono::duration<double> time = std::chrono::steady_clock::now() - start;
  cluster.shared().write("go", "");
  for (int node = 0; node < kNodes - 1; ++node) CHECK(cluster.end_of(node).code == 0);
  return time.count();
}

std::string torchrun() { return torch_folder() + "/torchrun"; }

TEST_CASE("after the death of a node fleetrun starts the ranks of the others again before torchrun does") {
  if (const auto missing = Namespaces::missing()) LEAVE_OUT(*missing);
  if (testing::soak_count(0) == 0) LEAVE_OUT("scripts/soak elastic runs it: torchrun takes a minute");
  if (!std::filesystem::exists(torchrun())) LEAVE_OUT("scripts/setup --peers installs torchrun");
  const Namespaces network(kNodes);
  Cluster ours(kNodes, &network), theirs(kNodes, &network);
  const double fleetrun = seconds_after_a_death(ours, [&](int node) {
    Words words = ours.by_list(node);
    for (const char* word : {"--nnodes=2:4", "--nproc_per_node=1", "--"}) words.emplace_back(word);
    return words;
  });
  for (int node = 0; node < kNodes; ++node) theirs.use(node, torchrun());
  const double torch = seconds_after_a_death(theirs, [&](int node) -> Words {
    return {
        "--nnodes=2:4",
        "--nproc-per-node=1",
        "--rdzv-backend=c10d",
        "--rdzv-endpoint=" + theirs.address(0) + ":29400",
        std::string("--rdzv-conf=is_host=") + (node == 0 ? "1" : "0"),  // no name leads to these addresses
        "--local-addr=" + theirs.address(node),
        "--max-restarts=3",
        "--no-python"};
  });
  MESSAGE("the ranks of three nodes run again after ", fleetrun, " s with fleetrun, ", torch,
          " s with torchrun");
  CHECK(fleetrun < 2);
  CHECK(fleetrun < torch);
}

}  // namespace
}  // namespace fleetrun::elastic_soak_test
