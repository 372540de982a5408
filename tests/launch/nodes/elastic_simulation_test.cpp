// Whole elastic runs in virtual time: nodes are lost at random moments, some come back, and every run ends on every node
// that is there.
#include <doctest/doctest.h>

#include <algorithm>
#include <functional>
#include <random>

#include <fmt/format.h>

#include "launch/nodes/coordinator.h"
#include "launch/nodes/virtual_time.h"
#include "support/soak.h"

namespace fleetrun::launch::elastic_simulation_test {
namespace {

using namespace std::chrono_literals;

// The life of one fleetrun on a node. A node that comes back is another one, with the same number.
struct Life {
  int number = 0;
  bool lost = false, ranks_run = false, stopping = false;
  bool waits = false;  // has no place
  int attempt = -1;    // for which it gets ready, or that runs
  std::optional<Over> over;
};

struct ElasticRun {
  int least = 1, most = 4, spares = 0;
  unsigned seed = 1;
};

class ElasticSimulation {
 public:
  explicit ElasticSimulation(const ElasticRun& run)
      : random_(run.seed),
        run_(run),
        coordinator_({.nodes = run.most,
                      .least = run.least,
                      .spares = run.spares,
                      .run_id = "run",
                      .restart = {.most = 20, .first_delay = 100ms}},
                     time_.now()) {}

  void play() {
    for (int number = 0; number < run_.most; ++number) after(pick(0, 3000), [this, number] { join(number); });
    for (int faults = pick(0, 6); faults > 0; --faults) after(pick(0, 40000), [this] { lose_one(); });
    watch_clock();
    time_.run();
  }

  const std::vector<Life>& lives() const { return lives_; }
  bool over() const { return coordinator_.over(); }
  int starts() const { return starts_; }

 private:
  int pick(int least, int most) { return std::uniform_int_distribution<int>(least, most)(random_); }
  void after(int milliseconds, std::function<void()> act) {
    time_.after(std::chrono::milliseconds(milliseconds), std::move(act));
  }
  Life& life(PeerId peer) { return lives_[peer - 1]; }

  void watch_clock() {
    if (const auto time = coordinator_.wake_at(); time && *time <= time_.now())
      perform(coordinator_.woke(time_.now()));
    if (!coordinator_.over()) after(50, [this] { watch_clock(); });
  }

  void join(int number) {
    if (coordinator_.over()) return;
    lives_.push_back({.number = number});
    say(lives_.size(), Join{.address = fmt::format("10.0.0.{}", number),
                            .host = "host",
                            .logs = {},
                            .node_rank = number,
                            .device_ids = {{0}, {1}},
                            .terms = {}});
  }

  // The first node coordinates, and is never lost here.
  void lose_one() {
    std::vector<PeerId> candidates;
    for (std::size_t i = 0; i < lives_.size(); ++i)
      if (lives_[i].number != 0 && !lives_[i].lost && !lives_[i].over) candidates.push_back(i + 1);
    if (candidates.empty()) return;
    const PeerId peer =
        candidates[static_cast<std::size_t>(pick(0, static_cast<int>(candidates.size()) - 1))];
    life(peer).lost = true;
    const bool is_cut_off = pick(0, 1) == 0;
    const TimePoint heard = time_.now();
    after(is_cut_off ? 4000 : 1, [this, peer, heard, is_cut_off] {
      perform(coordinator_.lost(peer, "gone", heard, time_.now(), !is_cut_off));
    });
    if (pick(0, 2) > 0) after(pick(10, 8000), [this, number = life(peer).number] { join(number); });
  }

  // Each connection keeps its order: all messages take equally long.
  void say(PeerId peer, FromNode message) {
    after(1, [this, peer, message = std::move(message)] {
      if (!life(peer).lost) perform(coordinator_.on(peer, message, time_.now()));
    });
  }
  void perform(const Coordinator::Actions& actions) {
    for (const auto& action : actions)
      if (const auto* tell = std::get_if<Coordinator::Tell>(&action))
        for (const PeerId to : tell->to) after(1, [this, to, message = tell->message] { hear(to, message); });
  }

  void hear(PeerId peer, const FromFirst& message) {
    Life& node = life(peer);
    if (node.lost) return;
    CHECK_FALSE(node.over);
    if (const auto* place = std::get_if<Place>(&message)) node.waits = place->node_rank < 0;
    if (const auto* places = std::get_if<Places>(&message))
      if (node.attempt < 0 && !node.waits) be_ready(peer, places->attempt);
    if (const auto* again = std::get_if<Again>(&message)) be_ready(peer, again->attempt);
    if (const auto* start = std::get_if<Start>(&message)) begin(peer, *start);
    if (std::holds_alternative<Stop>(message) && node.ranks_run && !std::exchange(node.stopping, true))
      after(pick(0, 500), [this, peer, attempt = node.attempt] { end(peer, attempt, false); });
    if (const auto* over = std::get_if<Over>(&message)) {
      CHECK_FALSE(node.ranks_run);
      node.over = *over;
    }
  }

  void be_ready(PeerId peer, int attempt) {
    CHECK_FALSE(life(peer).ranks_run);
    CHECK(attempt > life(peer).attempt);
    life(peer).attempt = attempt;
    after(pick(0, 200), [this, peer, attempt] {
      say(peer, Ready{.attempt = attempt, .ports = {1, 2}, .master_port = 3, .store = {}});
    });
  }

  void begin(PeerId peer, const Start& start) {
    Life& node = life(peer);
    CHECK(start.attempt == node.attempt);
    const auto nodes = std::ssize(start.ranks) / 2;
    CHECK(nodes >= std::min(run_.least, run_.most - run_.spares));
    CHECK(nodes <= run_.most - run_.spares);
    // All ranks that run belong to this attempt: two generations never work at the same time.
    for (const Life& other : lives_)
      if (other.ranks_run && !other.lost) CHECK(other.attempt == start.attempt);
    node.ranks_run = true;
    node.stopping = false;
    if (node.number == 0) ++starts_;
    after(15000, [this, peer, attempt = start.attempt] {
      if (!life(peer).stopping) end(peer, attempt, true);
    });
  }

  void end(PeerId peer, int attempt, bool finished) {
    Life& node = life(peer);
    if (node.lost || !node.ranks_run || node.attempt != attempt) return;
    node.ranks_run = false;
    say(peer, Ended{.attempt = attempt, .ranks = JsonValue::list({}), .finished = finished});
  }

  std::mt19937 random_;
  const ElasticRun run_;
  VirtualTime time_;
  Coordinator coordinator_;
  std::vector<Life> lives_;
  int starts_ = 0;
};

TEST_CASE(
    "random elastic runs over up to 16 nodes, of which some are lost and some come back, end on every node") {
  const auto runs = static_cast<unsigned>(testing::soak_count(300));
  int starts = 0;
  for (unsigned seed = 1; seed <= runs; ++seed) {
    CAPTURE(seed);
    const int most = 2 + static_cast<int>(seed % 15);
    ElasticSimulation simulation({.least = 1 + static_cast<int>(seed % 7) % (most - 1),
                                  .most = most,
                                  .spares = static_cast<int>(seed % 3) % (most - 1),
                                  .seed = seed});
    simulation.play();
    REQUIRE(simulation.over());
    for (const Life& node : simulation.lives()) {
      CHECK((node.lost || !node.ranks_run));
      CHECK((node.lost || node.over));
    }
    starts += simulation.starts();
  }
  CHECK(starts > static_cast<int>(runs));  // some began again
}

}  // namespace
}  // namespace fleetrun::launch::elastic_simulation_test
