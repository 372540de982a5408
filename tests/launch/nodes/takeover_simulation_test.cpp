// Whole elastic runs in virtual time in which every node may be lost, also the first one: nodes die, lose their link for
// good or for a while, or stand still. Messages are late. The parts that decide are the real ones; this file plays the
// NodeSession of each node and the network.
#include <doctest/doctest.h>

#include <algorithm>
#include <deque>
#include <functional>
#include <memory>
#include <random>

#include <fmt/format.h>

#include "launch/nodes/coordinator.h"
#include "launch/nodes/quorum.h"
#include "launch/nodes/succession.h"
#include "launch/nodes/virtual_time.h"
#include "support/soak.h"

namespace fleetrun::launch::takeover_simulation_test {
namespace {

using namespace std::chrono_literals;

constexpr auto kLongest = 10min;  // no run takes longer
constexpr auto kUnnoticed =
    12s;  // from a start until the ranks of all earlier attempts have ended: silence and grace
constexpr int kWork = 20000;  // ms that the ranks need without a fault

struct Life;

struct Server {
  Coordinator coordinator;
  bool is_successor = false;
  PeerId last_peer = 0;
};

struct Connection {
  Life* client = nullptr;
  Life* server = nullptr;
  PeerId peer = 0;
  bool open_at_client = true, open_at_server = true;
  TimePoint last_arrival;  // keeps the order of messages
};

// One fleetrun on a host. One that comes back is another one.
struct Life {
  int host = 0;
  bool dead = false;
  TimePoint frozen_until, thawed;
  std::unique_ptr<Server> server;
  std::shared_ptr<Connection> link;
  // As in a NodeSession.
  AttemptsSeen seen;
  int node_rank = 0;
  bool had_place = false;
  std::optional<Places> known;
  std::optional<Succession> succession;
  NodeFailure loss;
  bool has_found = false;
  std::optional<Over> over;
  // Its ranks.
  std::optional<int> runs;  // the attempt
  bool stopping = false;
  std::optional<int> again;  // the attempt for which it gets ready when its ranks have ended
};

struct Shape {
  int nodes = 4, least = 2, spares = 0;
  unsigned seed = 1;
};

class Simulation {
 public:
  explicit Simulation(const Shape& shape)
      : random_(shape.seed), shape_(shape), cut_(static_cast<std::size_t>(shape.nodes)) {}

  void play() {
    begin_ = time_.now();
    Life& first = add(0);
    serve(first, {});
    connect(first, first);
    for (int host = 1; host < shape_.nodes; ++host) after(pick(1, 2000), [this, host] { come(add(host)); });
    for (int faults = pick(1, 5); faults > 0; --faults) after(pick(3000, 45000), [this] { fault(); });
    watch();
    time_.run();
  }

  const std::deque<Life>& lives() const { return lives_; }
  bool timed_out() const { return timed_out_; }
  bool trained() const { return trained_; }
  int takeovers() const { return takeovers_; }

 private:
  int pick(int least, int most) { return std::uniform_int_distribution<int>(least, most)(random_); }
  void after(int milliseconds, std::function<void()> act) {
    time_.after(std::chrono::milliseconds(milliseconds), std::move(act));
  }
  Life& add(int host) { return lives_.emplace_back(Life{.host = host}); }
  static std::string address(int host) { return fmt::format("10.0.0.{}", host); }
  bool reaches(const Life& a, const Life& b) const {
    return a.host == b.host || (!is_cut(a.host) && !is_cut(b.host) && !apart_.contains({a.host, b.host}));
  }
  bool is_cut(int host) const { return cut_[static_cast<std::size_t>(host)]; }
  // False: the life is dead. A frozen one does it later.
  void with(Life& life, const std::function<void()>& act) {
    if (life.dead) return;
    if (life.frozen_until > time_.now())
      return time_.at(life.frozen_until, [this, &life, act] { with(life, act); });
    act();
  }
  bool settled() const {
    return std::ranges::all_of(lives_,
                               [](const Life& life) { return life.dead || (life.over && !life.runs); });
  }

  // ---- The network.

  void connect(Life& client, Life& server) {
    const auto one = std::make_shared<Connection>(Connection{&client, &server, ++server.server->last_peer});
    client.link = one;
    connections_.push_back(one);
    Join join = {.address = address(client.host),
                 .host = "host",
                 .logs = {},
                 .node_rank = client.host,
                 .device_ids = {{0}},
                 .terms = {},
                 .coordinates = &client == &server,
                 .seen = client.seen};
    to_server(one, std::move(join));
    watch_silence(one);
  }

  TimePoint arrival(Connection& one) {
    const TimePoint soonest = time_.now() + std::chrono::milliseconds(pick(1, pick(0, 9) == 0 ? 500 : 20));
    one.last_arrival = std::max(one.last_arrival, soonest);
    return one.last_arrival;
  }
  // TCP repeats what a cut link loses, until one end gives up.
  void carry(const std::shared_ptr<Connection>& one, bool to_client, const std::function<void()>& deliver) {
    if (!(to_client ? one->open_at_client : one->open_at_server)) return;
    if (!reaches(*one->client, *one->server)) return carry_later(one, to_client, deliver);
    with(to_client ? *one->client : *one->server, [one, to_client, deliver] {
      if (to_client ? one->open_at_client : one->open_at_server) deliver();
    });
  }
  void carry_later(const std::shared_ptr<Connection>& one, bool to_client,
                   const std::function<void()>& deliver) {
    one->last_arrival = std::max(one->last_arrival, time_.now() + 200ms);
    time_.at(one->last_arrival, [=, this] { carry(one, to_client, deliver); });
  }
  void to_server(const std::shared_ptr<Connection>& one, FromNode message) {
    if (!one->open_at_client) return;
    time_.at(arrival(*one), [this, one, message = std::move(message)] {
      carry(one, false, [this, one, message] {
        if (one->server->server)
          perform(*one->server, one->server->server->coordinator.on(one->peer, message, time_.now()));
      });
    });
  }
  void perform(Life& life, const Coordinator::Actions& actions) {
    for (const auto& action : actions)
      if (const auto* tell = std::get_if<Coordinator::Tell>(&action))
        for (const PeerId peer : tell->to)
          if (const auto one = connection_of(life, peer))
            time_.at(arrival(*one), [this, one, message = tell->message] {
              carry(one, true, [this, one, message] { hear(*one->client, message); });
            });
  }
  std::shared_ptr<Connection> connection_of(const Life& server, PeerId peer) const {
    for (const auto& one : connections_)
      if (one->server == &server && one->peer == peer && one->open_at_server) return one;
    return nullptr;
  }
  // Both ends look once a second whether the other one was silent for 4 s.
  void watch_silence(const std::shared_ptr<Connection>& one) {
    for (const bool at_client : {true, false}) look_for_silence(one, at_client, time_.now());
  }
  void look_for_silence(const std::shared_ptr<Connection>& one, bool at_client, TimePoint heard) {
    after(1000, [=, this] {
      Life& own = at_client ? *one->client : *one->server;
      Life& other = at_client ? *one->server : *one->client;
      if (!(at_client ? one->open_at_client : one->open_at_server) || own.dead || settled()) return;
      const bool still =
          own.frozen_until > time_.now() || own.thawed + 1s > time_.now();  // stood still itself
      const bool hears = !other.dead && other.frozen_until <= time_.now() && reaches(own, other);
      const TimePoint last = hears || still ? time_.now() : heard;
      if (time_.now() - last > 4s) return lose(one, at_client, false);
      look_for_silence(one, at_client, last);
    });
  }
  void lose(const std::shared_ptr<Connection>& one, bool at_client, bool ended) {
    bool& open = at_client ? one->open_at_client : one->open_at_server;
    if (!std::exchange(open, false)) return;
    bool& other = at_client ? one->open_at_server : one->open_at_client;
    if (other && !ended) after(pick(1, 20), [=, this] { tell_reset(one, !at_client); });
    if (at_client) return on_lost(*one->client);
    if (one->server->server)
      perform(*one->server,
              one->server->server->coordinator.lost(one->peer, "gone", time_.now(), time_.now(), ended));
  }
  void tell_reset(const std::shared_ptr<Connection>& one, bool at_client) {
    carry(one, at_client, [=, this] { lose(one, at_client, false); });
  }

  // ---- The session of a node.

  void serve(Life& life, std::optional<TakeOver> takes_over) {
    const bool successor = takes_over.has_value();
    life.server = std::make_unique<Server>(Server{Coordinator({.nodes = shape_.nodes,
                                                               .least = shape_.least,
                                                               .spares = shape_.spares,
                                                               .run_id = "run",
                                                               .restart = {.most = 20, .first_delay = 100ms},
                                                               .takes_over = std::move(takes_over)},
                                                              time_.now()),
                                                  successor});
    watch_clock(life);
  }
  void watch_clock(Life& life) {
    with(life, [this, &life] {
      Coordinator& coordinator = life.server->coordinator;
      if (const auto time = coordinator.wake_at(); time && *time <= time_.now())
        perform(life, coordinator.woke(time_.now()));
      if (!coordinator.over() && !life.over) after(50, [this, &life] { watch_clock(life); });
    });
  }

  // A node that starts: the first one of the run, or one that has taken over, must answer.
  void come(Life& life, int tries = 60) {
    with(life, [this, &life, tries] {
      for (Life& other : lives_)
        if (other.server && !other.dead && !other.server->coordinator.over() && reaches(life, other))
          return connect(life, other);
      if (tries == 0 || trained_) return end(life, {Over{NodeFailure{.line = "no first node"}, {}}});
      after(500, [this, &life, tries] { come(life, tries - 1); });
    });
  }

  void hear(Life& life, const FromFirst& message) {
    if (life.over) return;
    if (const auto* place = std::get_if<Place>(&message)) life.node_rank = place->node_rank;
    if (const auto* places = std::get_if<Places>(&message)) see_places(life, *places);
    if (const auto* next = std::get_if<Again>(&message)) {
      life.again = next->attempt;
      get_ready_if_ended(life);
    }
    if (const auto* start = std::get_if<Start>(&message)) begin_ranks(life, *start);
    if (std::holds_alternative<Stop>(message)) stop(life);
    if (const auto* over = std::get_if<Over>(&message)) end(life, *over);
  }
  void see_places(Life& life, const Places& places) {
    life.succession.reset();
    life.known = places;
    if (life.node_rank >= 0)
      life.seen.be_ready({places.attempt, static_cast<int>(places.nodes.size()), life.node_rank});
    if (life.node_rank < 0 || std::exchange(life.had_place, true)) return;
    life.again = places.attempt;
    get_ready_if_ended(life);
  }
  void get_ready_if_ended(Life& life) {
    if (life.runs || !life.again) return;
    after(pick(0, 300), [this, &life, attempt = *life.again] {
      with(life, [this, &life, attempt] {
        if (life.runs || life.again != attempt || !life.link->open_at_client || life.succession) return;
        life.again.reset();
        to_server(life.link, Ready{.attempt = attempt, .ports = {1}, .master_port = 2, .store = {}});
      });
    });
  }
  void end(Life& life, const Over& over) {
    life.succession.reset();
    life.over = over;
    trained_ = trained_ || !over.failure;
    if (over.failure) CHECK(!over.failure->line.empty());
    stop(life);
  }

  void on_lost(Life& life) {
    if (life.over) return;
    if (life.succession) {
      life.has_found = false;
      return;
    }
    life.loss = {.cause = "node_lost", .line = "lost the first node", .block = "lost\n", .exit_code = 75};
    stop(life);
    const bool may = life.known && life.known->nodes.size() > 1 && !life.server;
    if (!may) return end(life, Over{life.loss, 0});
    life.has_found = false;
    life.succession.emplace(static_cast<int>(life.known->nodes.size()),
                            life.node_rank < 0 ? std::nullopt : std::optional(life.node_rank), time_.now());
    look(life);
  }
  void look(Life& life) {
    with(life, [this, &life] {
      if (!life.succession) return;
      if (!life.has_found) look_now(life);
      after(100, [this, &life] { look(life); });
    });
  }
  void look_now(Life& life) {
    const Succession::Plan plan = life.succession->plan(time_.now());
    if (plan.gave_up) return end(life, Over{life.loss, 0});
    if (plan.serve) {
      life.has_found = true;
      serve(life, TakeOver{.loss = life.loss,
                           .survivors = static_cast<int>(life.known->nodes.size()) - 1,
                           .restarts = {life.known->restarts},
                           .terms = {},
                           .meet = Succession::kTurn});
      return connect(life, life);
    }
    for (const int rank : plan.ask)
      for (Life& other : lives_)
        if (address(other.host) == life.known->nodes[static_cast<std::size_t>(rank)].address &&
            other.server && other.server->is_successor && !other.dead && other.frozen_until <= time_.now() &&
            !other.over && reaches(life, other)) {
          life.has_found = true;
          return connect(life, other);
        }
  }

  // ---- The ranks of a node.

  void begin_ranks(Life& life, const Start& start) {
    CHECK_FALSE(life.runs);
    life.seen.see_start(start.attempt);
    life.runs = start.attempt;
    life.stopping = false;
    Life* const coordinator = life.link->server;
    const auto [known, is_new] = coordinators_.try_emplace(start.attempt, coordinator);
    CHECK(known->second == coordinator);  // nobody else starts an attempt with this number
    if (is_new) started_[start.attempt] = time_.now();
    if (is_new && coordinator->server->is_successor) ++takeovers_;
    after(kWork, [this, &life, attempt = start.attempt] { end_ranks(life, attempt, true); });
  }
  void stop(Life& life) {
    if (!life.runs || std::exchange(life.stopping, true)) return;
    after(pick(0, 2000), [this, &life, attempt = *life.runs] { end_ranks(life, attempt, false); });
  }
  void end_ranks(Life& life, int attempt, bool finished) {
    with(life, [this, &life, attempt, finished] {
      if (life.runs != attempt || (finished && life.stopping)) return;
      life.runs.reset();
      if (life.link->open_at_client)
        to_server(life.link, Ended{.attempt = attempt,
                                   .failure = {},
                                   .ranks = JsonValue::list({}),
                                   .roll_call = {},
                                   .finished = finished});
      get_ready_if_ended(life);
    });
  }

  // ---- Faults, and what must hold.

  void fault() {
    std::vector<Life*> candidates;
    for (Life& life : lives_)
      if (!life.dead && !life.over && !is_cut(life.host) && life.frozen_until <= time_.now())
        candidates.push_back(&life);
    if (candidates.empty()) return;
    Life& life =
        pick(0, 2) == 0
            ? *candidates.front()
            : *candidates[static_cast<std::size_t>(pick(0, static_cast<int>(candidates.size()) - 1))];
    switch (pick(0, 4)) {
      case 0:
        return kill(life, true);
      case 1:
        return kill(life, false);  // its power goes
      case 2:
        return cut(life.host, pick(500, 40000));
      case 3:
        life.frozen_until = life.thawed = time_.now() + std::chrono::milliseconds(pick(500, 40000));
        return;
      default:
        return divide(pick(500, 40000));
    }
  }
  void kill(Life& life, bool by_signal) {
    life.dead = true;
    life.runs.reset();
    if (by_signal)
      for (const auto& one : connections_)
        if (one->client == &life || one->server == &life) {
          const bool at_client = one->server == &life;
          after(pick(1, 20),
                [this, one, at_client] { carry(one, at_client, [=, this] { lose(one, at_client, true); }); });
        }
    if (pick(0, 1) == 0)
      after(pick(100, 8000), [this, host = life.host] {
        if (!trained_) come(add(host));
      });
  }
  void cut(int host, int milliseconds) {
    cut_[static_cast<std::size_t>(host)] = true;
    after(milliseconds, [this, host] { cut_[static_cast<std::size_t>(host)] = false; });
  }
  // Two parts that do not reach each other.
  void divide(int milliseconds) {
    std::vector<bool> left;
    for (int host = 0; host < shape_.nodes; ++host) left.push_back(pick(0, 1) == 0);
    for (int one = 0; one < shape_.nodes; ++one)
      for (int other = 0; other < shape_.nodes; ++other)
        if (left[static_cast<std::size_t>(one)] != left[static_cast<std::size_t>(other)])
          apart_.insert({one, other});
    after(milliseconds, [this] { apart_.clear(); });
  }

  // Once a later attempt has started, the ranks of earlier ones end soon. A frozen node does nothing.
  void watch() {
    after(200, [this] {
      if (settled()) return;
      if (time_.now() - begin_ > kLongest) return give_up();
      for (const Life& life : lives_)
        if (life.runs && !life.dead && life.frozen_until <= time_.now())
          if (const auto later = started_.upper_bound(*life.runs); later != started_.end())
            CHECK(time_.now() - std::max(later->second, life.thawed) < kUnnoticed);
      watch();
    });
  }
  void give_up() {
    timed_out_ = true;
    for (Life& life : lives_) life.dead = true;
  }

  std::mt19937 random_;
  const Shape shape_;
  VirtualTime time_;
  TimePoint begin_;
  std::deque<Life> lives_;  // whose addresses stay
  std::vector<std::shared_ptr<Connection>> connections_;
  std::vector<bool> cut_;
  std::set<std::pair<int, int>> apart_;
  std::map<int, Life*> coordinators_;  // of each attempt
  std::map<int, TimePoint> started_;
  int takeovers_ = 0;
  bool trained_ = false, timed_out_ = false;
};

TEST_CASE(
    "random runs over up to nine nodes, of which any may be lost, have one first node at a time, and all end") {
  const auto runs = static_cast<unsigned>(testing::soak_count(1000));
  int trained = 0, takeovers = 0;
  for (unsigned seed = 1; seed <= runs; ++seed) {
    CAPTURE(seed);
    const int nodes = 2 + static_cast<int>(seed % 8);
    Simulation simulation({.nodes = nodes,
                           .least = 1 + static_cast<int>(seed / 8 % 3) % (nodes - 1),
                           .spares = nodes > 3 ? static_cast<int>(seed / 24 % 2) : 0,
                           .seed = seed});
    simulation.play();
    REQUIRE_FALSE(simulation.timed_out());
    for (const Life& life : simulation.lives()) CHECK((life.dead || (life.over && !life.runs)));
    trained += simulation.trained() ? 1 : 0;
    takeovers += simulation.takeovers();
  }
  MESSAGE(runs, " runs: ", trained, " trained, ", takeovers,
          " attempts began under a node that had taken over");
  CHECK(trained > static_cast<int>(runs / 2));
  CHECK(takeovers > static_cast<int>(runs / 10));
}

}  // namespace
}  // namespace fleetrun::launch::takeover_simulation_test
