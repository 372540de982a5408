// Whole runs over many nodes in virtual time: random delays, failures, losses and restarts.
#include <doctest/doctest.h>

#include <algorithm>
#include <functional>
#include <map>
#include <random>

#include <fmt/format.h>

#include "launch/nodes/coordinator.h"
#include "launch/nodes/virtual_time.h"
#include "support/soak.h"

namespace fleetrun::launch::coordinator_simulation_test {
namespace {

using namespace std::chrono_literals;

constexpr auto kSilence = 4s;

std::int64_t in_ns(TimePoint time) { return time.time_since_epoch() / std::chrono::nanoseconds(1); }

// What one node does when it runs: its ranks end well, one of them fails, or the node is cut off.
enum class Fate { ends, fails, is_lost };

struct SimulatedNode {
  int ranks = 1;
  Fate fate = Fate::ends;
  bool running = false, stopping = false, lost = false;
  std::optional<NodeFailure> failure;
  std::optional<Over> over;
  int starts = 0;
};

class Simulation {
 public:
  Simulation(unsigned seed, int nodes, int restarts)
      : random_(seed),
        nodes_(static_cast<std::size_t>(nodes)),
        coordinator_({.nodes = nodes, .run_id = "run", .restart = {.most = restarts, .first_delay = 1s}},
                     time_.now()) {}

  void run() {
    for (std::size_t node = 0; node < nodes_.size(); ++node) {
      nodes_[node].ranks = pick(1, 8);
      after(milliseconds(0, 3000), [this, node] { join(node); });
    }
    watch_clock();
    time_.run();
  }

  const std::vector<SimulatedNode>& nodes() const { return nodes_; }
  bool over() const { return coordinator_.over(); }
  // Of the last attempt: by true time.
  const std::optional<NodeFailure>& first_failure() const { return first_; }

 private:
  int pick(int least, int most) { return std::uniform_int_distribution<int>(least, most)(random_); }
  Clock::duration milliseconds(int least, int most) {
    return std::chrono::microseconds(1000 * pick(least, most) + pick(0, 999));
  }
  void after(Clock::duration delay, std::function<void()> act) { time_.after(delay, std::move(act)); }

  // One connection delivers in order; `last` is the time of its latest message.
  void deliver(TimePoint& last, std::function<void()> act) {
    last = std::max(last, time_.now() + milliseconds(0, 5));
    time_.at(last, std::move(act));
  }

  static PeerId peer_of(std::size_t node) { return node + 1; }

  void say(std::size_t node, FromNode message) {
    if (nodes_[node].lost) return;
    deliver(to_first_[node], [this, node, message = std::move(message)] {
      if (!nodes_[node].lost) perform(coordinator_.on(peer_of(node), message, time_.now()));
    });
  }

  void perform(const Coordinator::Actions& actions) {
    for (const auto& action : actions)
      if (const auto* tell = std::get_if<Coordinator::Tell>(&action))
        for (const PeerId to : tell->to)
          deliver(to_node_[to - 1], [this, to, message = tell->message] { hear(to - 1, message); });
  }

  void watch_clock() {
    if (const auto time = coordinator_.wake_at(); time && *time <= time_.now())
      perform(coordinator_.woke(time_.now()));
    if (!coordinator_.over()) after(50ms, [this] { watch_clock(); });
  }

  void join(std::size_t node) {
    Join join = {.address = fmt::format("10.0.0.{}", node),
                 .host = "host",
                 .node_rank = static_cast<int>(node),
                 .terms = {}};
    for (int rank = 0; rank < nodes_[node].ranks; ++rank) join.device_ids.push_back({rank});
    say(node, join);
  }

  void hear(std::size_t number, const FromFirst& message) {
    SimulatedNode& node = nodes_[number];
    if (node.lost) return;
    CHECK_FALSE(node.over);  // nothing comes after the end
    if (std::holds_alternative<Places>(message)) be_ready(number, 0);
    if (const auto* again = std::get_if<Again>(&message)) be_ready(number, again->attempt);
    if (const auto* start = std::get_if<Start>(&message)) begin(number, *start);
    if (std::holds_alternative<Stop>(message)) stop(number);
    if (const auto* over = std::get_if<Over>(&message)) {
      CHECK_FALSE(node.running);  // no orphan rank
      node.over = *over;
    }
  }

  void be_ready(std::size_t number, int attempt) {
    attempt_ = attempt;
    first_.reset();
    Ready ready = {.attempt = attempt, .ports = {}, .master_port = 1, .store = {}};
    ready.ports.resize(static_cast<std::size_t>(nodes_[number].ranks), 6070);
    say(number, ready);
  }

  void begin(std::size_t number, const Start& start) {
    SimulatedNode& node = nodes_[number];
    CHECK(start.attempt == attempt_);
    int world = 0;
    for (const SimulatedNode& one : nodes_) world += one.ranks;
    CHECK(std::ssize(start.ranks) == world);
    CHECK_FALSE(node.running);
    ++node.starts;
    node.running = true;
    node.stopping = false;
    node.failure.reset();
    const int dice = pick(0, 9);
    node.fate = dice == 0 ? Fate::fails : dice == 1 && pick(0, 3) == 0 ? Fate::is_lost : Fate::ends;
    const int attempt = start.attempt;
    after(milliseconds(10, 2000), [this, number, attempt] { meet_fate(number, attempt); });
  }

  void meet_fate(std::size_t number, int attempt) {
    SimulatedNode& node = nodes_[number];
    if (!node.running || node.stopping || attempt != attempt_ || node.lost) return;
    if (node.fate == Fate::ends) return end(number);
    if (node.fate == Fate::is_lost) {
      node.lost = true;
      node.running = false;  // its own launcher ends its ranks
      note_failure("node_lost");
      const TimePoint last_heard = time_.now();
      return after(kSilence, [this, number, last_heard] {
        perform(coordinator_.lost(peer_of(number), "no answer for 4 s", last_heard, time_.now()));
      });
    }
    node.stopping = true;
    node.failure = NodeFailure{.at = in_ns(time_.now()),
                               .cause = "exited",
                               .line = fmt::format("node {} failed", number),
                               .exit_code = 3};
    note_failure("exited");
    say(number, Failed{attempt, *node.failure});
    after(milliseconds(0, 500), [this, number] { end(number); });
  }

  void note_failure(const std::string& cause) {
    if (!first_) first_ = NodeFailure{.at = in_ns(time_.now()), .cause = cause};
  }

  void stop(std::size_t number) {
    SimulatedNode& node = nodes_[number];
    if (!node.running || std::exchange(node.stopping, true)) return;
    after(milliseconds(0, 500), [this, number] { end(number); });
  }

  void end(std::size_t number) {
    SimulatedNode& node = nodes_[number];
    if (!node.running) return;
    node.running = false;
    say(number, Ended{attempt_, node.failure, JsonValue::list({})});
  }

  std::mt19937 random_;
  VirtualTime time_;
  std::vector<SimulatedNode> nodes_;
  Coordinator coordinator_;
  std::map<std::size_t, TimePoint> to_first_, to_node_;
  int attempt_ = 0;
  std::optional<NodeFailure> first_;
};

void check_run(unsigned seed, int nodes) {
  CAPTURE(seed);
  Simulation simulation(seed, nodes, static_cast<int>(seed % 3));
  simulation.run();
  REQUIRE(simulation.over());
  for (const SimulatedNode& node : simulation.nodes()) {
    CHECK_FALSE(node.running);
    if (node.lost) continue;
    REQUIRE(node.over);  // every node that is there knows the end
    CHECK(node.over->failure.has_value() == simulation.first_failure().has_value());
    if (node.over->failure) CHECK(node.over->failure->at == simulation.first_failure()->at);
  }
}

TEST_CASE("random runs over up to 32 nodes end on every node with the first cause, and no rank is left") {
  const auto runs = static_cast<unsigned>(testing::soak_count(300));
  for (unsigned seed = 1; seed <= runs; ++seed) check_run(seed, 2 + static_cast<int>(seed % 31));
}

TEST_CASE("a run over 1,024 nodes is decided by the same rules") { check_run(7, 1024); }

}  // namespace
}  // namespace fleetrun::launch::coordinator_simulation_test
