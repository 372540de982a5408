// A run over many nodes in virtual time: the real Coordinator and the real messages, and a model of the network and of the other nodes.
// Prints a table: messages, bytes and time of each phase.
//
// The first node handles one message at a time. That takes the processor time which the Coordinator needs here, and kSend per message
// that it sends. Its link sends one message after the other at the given bandwidth. Each message then takes the latency of the network.
// A lost packet delays its message by 200 ms, the shortest timeout of Linux's TCP, and all later messages of the same connection.
// The model leaves out the handshakes, the ranks, and the processors of the other nodes.
#include <time.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "base/error/error.h"
#include "base/json/json_reader.h"
#include "base/json/json_value.h"
#include "base/run/store_protocol.h"
#include "launch/nodes/coordinator.h"
#include "launch/nodes/node_server.h"
#include "launch/nodes/virtual_time.h"
#include "launch/serve/figures_json.h"

namespace fleetrun::launch {
namespace {

using namespace std::chrono_literals;
using Milliseconds = std::chrono::duration<double, std::milli>;

constexpr auto kSend = 4us;              // of processor time for a send(2) of a small message; an assumption
constexpr auto kRetransmission = 200ms;  // TCP_RTO_MIN of Linux
constexpr std::size_t kPacket = 1448;    // bytes of data in a packet of 1500
constexpr std::size_t kMostUnsent = 8;   // messages; then the first node drops a peer (loop/peer_server.cpp)
constexpr auto kSteady = 10s;            // how long the ranks train before a node fails

struct Model {
  int ranks = 8;  // of each node
  Clock::duration latency = 50us;
  double bytes_per_second = 10e9 / 8;
  double loss = 1e-5;  // of packets
};

// What the first node does in one phase, and for how long.
struct Phase {
  const char* name = "";
  TimePoint begin, end;
  std::uint64_t in = 0, out = 0;  // messages
  std::uint64_t bytes_in = 0, bytes_out = 0;
  Clock::duration busy{};  // processor time of the first node

  double seconds() const { return std::chrono::duration<double>(end - begin).count(); }
};

Clock::duration processor_time() {
  timespec time{};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return std::chrono::seconds(time.tv_sec) + std::chrono::nanoseconds(time.tv_nsec);
}

std::int64_t in_ns(TimePoint time) { return time.time_since_epoch() / 1ns; }

// More than ten members: the state of the first node, of its link, and of all other nodes.
class Simulation {
 public:
  Simulation(int nodes, const Model& model)
      : model_(model),
        nodes_(nodes),
        to_first_(static_cast<std::size_t>(nodes)),
        to_node_(static_cast<std::size_t>(nodes)),
        unsent_(static_cast<std::size_t>(nodes)),
        coordinator_(
            {.nodes = nodes, .run_id = "default-19a1f2c3d4e-6f2", .restart = {.most = 3, .first_delay = 0s}},
            time_.now()) {}

  std::vector<Phase> run() {
    begin("join");
    for (int node = 0; node < nodes_; ++node) time_.after(spread(100ms), [this, node] { join(node); });
    time_.run();
    return phases_;
  }

  std::size_t longest_message() const { return longest_; }
  const std::string& longest_name() const { return longest_name_; }
  int dropped() const { return dropped_; }

 private:
  struct Connection {
    TimePoint free;  // the last message arrives
  };

  Clock::duration spread(Clock::duration most) {
    return Clock::duration(std::uniform_int_distribution<Clock::rep>(0, most.count())(random_));
  }

  void begin(const char* name) {
    if (!phases_.empty()) phases_.back().end = time_.now();
    phases_.push_back({.name = name, .begin = time_.now(), .end = time_.now()});
  }
  Phase& phase() { return phases_.back(); }

  TimePoint arrival(Connection& connection, TimePoint sent, std::size_t bytes) {
    const double packets = std::ceil(static_cast<double>(bytes) / kPacket);
    const double lost = 1 - std::pow(1 - model_.loss, packets);
    const bool is_lost = std::uniform_real_distribution<double>(0, 1)(random_) < lost;
    connection.free =
        std::max(connection.free, sent + model_.latency + (is_lost ? Clock::duration(kRetransmission) : 0s));
    return connection.free;
  }

  Clock::duration on_wire(std::size_t bytes) const {
    return std::chrono::nanoseconds(
        static_cast<std::int64_t>(static_cast<double>(bytes) / model_.bytes_per_second * 1e9));
  }

  // ---- The first node.

  using Frame = std::shared_ptr<const std::string>;

  void say(int node, const FromNode& message) {
    say(node, std::make_shared<const std::string>(encode(message)));
  }

  void say(int node, const Frame& frame) {
    ++phase().in;
    phase().bytes_in += frame->size();
    incoming_ = std::max(incoming_, time_.now()) + on_wire(frame->size());
    const TimePoint at = arrival(to_first_[static_cast<std::size_t>(node)], incoming_, frame->size());
    time_.at(at, [this, node, frame] {
      waiting_.emplace_back(node, frame);
      if (waiting_.size() == 1) time_.at(std::max(busy_until_, time_.now()), [this] { take_next(); });
    });
  }

  void take_next() {
    handle(waiting_.front().first, *waiting_.front().second);
    waiting_.pop_front();
    if (!waiting_.empty()) time_.at(busy_until_, [this] { take_next(); });
  }

  // What NodeServer does with a frame.
  void handle(int node, const std::string& frame) {
    const Clock::duration start = processor_time();
    const auto message = store_protocol::decode(std::string_view(frame).substr(store_protocol::kLengthBytes));
    const auto said = decode_from_node(std::get<store_protocol::Set>(message.value())).value();
    Coordinator::Actions actions;
    if (const auto* answer = std::get_if<Answer>(&said))
      read_figures(read_json(answer->text).root);
    else
      actions = coordinator_.on(static_cast<PeerId>(node) + 1, said, time_.now());
    perform(actions, start);
  }

  void perform(const Coordinator::Actions& actions, Clock::duration start) {
    std::vector<std::pair<const Coordinator::Tell*, std::size_t>> tells;
    for (const auto& action : actions)
      if (const auto* tell = std::get_if<Coordinator::Tell>(&action))
        tells.emplace_back(tell, size_of(tell->message));
    Clock::duration took = processor_time() - start;
    for (const auto& [tell, bytes] : tells)
      took += static_cast<int>(tell->to.size()) * Clock::duration(kSend);
    phase().busy += took;
    busy_until_ = std::max(busy_until_, time_.now()) + took;
    for (const auto& [tell, bytes] : tells) send(*tell, bytes);
    wake_later();
  }

  void wake_later() {
    const auto wake = coordinator_.wake_at();
    if (!wake || coordinator_.over() || (wake_ && *wake_ <= *wake)) return;
    wake_ = wake;
    time_.at(std::max(*wake, time_.now()), [this] {
      wake_.reset();
      const auto due = coordinator_.wake_at();
      if (due && *due <= time_.now()) return perform(coordinator_.woke(time_.now()), processor_time());
      if (started_once_ && !failed_) return;
      wake_later();
    });
  }

  std::size_t size_of(const FromFirst& message) {
    const std::size_t bytes = encode(message).size();
    if (bytes > longest_) {
      longest_ = bytes;
      longest_name_ = std::holds_alternative<Places>(message)  ? "Places"
                      : std::holds_alternative<Start>(message) ? "Start"
                                                               : "another";
    }
    return bytes;
  }

  void send(const Coordinator::Tell& tell, std::size_t bytes) {
    const auto message = std::make_shared<const FromFirst>(tell.message);
    for (const PeerId peer : tell.to) send_to(static_cast<int>(peer) - 1, message, bytes);
  }

  void send_to(int node, const std::shared_ptr<const FromFirst>& message, std::size_t bytes) {
    const auto place = static_cast<std::size_t>(node);
    ++phase().out;
    phase().bytes_out += bytes;
    outgoing_ = std::max({outgoing_, time_.now(), busy_until_}) + on_wire(bytes);
    if (++unsent_[place] > kMostUnsent) ++dropped_;
    time_.at(outgoing_, [this, place] { --unsent_[place]; });
    time_.at(arrival(to_node_[place], outgoing_, bytes), [this, node, message] { hear(node, *message); });
  }

  // ---- The other nodes.

  void join(int node) {
    Join join = {.address = fmt::format("10.{}.{}.{}", 1 + node / 65536, node / 256 % 256, node % 256),
                 .host = fmt::format("node{:05}.cluster", node),
                 .logs = fmt::format("/home/user/experiments/resnet50/log.node{}", node),
                 .node_rank = node,
                 .terms = {}};
    for (int i = 0; i < 60; ++i)  // as many as a job file and the flags have
      join.terms.emplace_back(fmt::format("optimizer.some_key_{} of the job file", i), "0.1234");
    for (int rank = 0; rank < model_.ranks; ++rank) join.device_ids.push_back({rank});
    say(node, join);
  }

  void hear(int node, const FromFirst& message) {
    if (std::holds_alternative<Places>(message)) be_ready(node, 0);
    if (const auto* again = std::get_if<Again>(&message)) {
      if (++heard_again_ == 1) begin("restart");
      be_ready(node, again->attempt);
    }
    if (const auto* start = std::get_if<Start>(&message)) begin_attempt(node, start->attempt);
    if (std::holds_alternative<Stop>(message)) {
      if (++stopped_ == nodes_ - 1) begin("end of the ranks");
      end(node, std::nullopt);
    }
  }

  void be_ready(int node, int attempt) {
    if (attempt == 0 && ++placed_ == nodes_) begin("start");
    Ready ready = {.attempt = attempt, .ports = {}, .master_port = 6171, .store = {}};
    for (int rank = 0; rank < model_.ranks; ++rank)
      ready.ports.push_back(static_cast<std::uint16_t>(6070 + rank));
    say(node, ready);
  }

  void begin_attempt(int node, int attempt) {
    if (++started_ < nodes_) return;
    started_ = 0;
    attempt_ = attempt;
    started_once_ = true;
    begin("training");
    if (attempt > 0) return;  // the second attempt needs no more figures
    for (int each = 0; each < nodes_; ++each) time_.after(spread(1s), [this, each] { tick(each); });
    time_.after(kSteady, [this, node] { fail(node); });
  }

  // Each second a node sends a beat and what its ranks did, and answers the question for the figures of its ranks.
  void tick(int node) {
    if (failed_) return;
    say(node, Beat{.sent = in_ns(time_.now())});
    say(node, Signs{attempt_, {.silent = 1s, .unmatched = {}, .excuses_steps = false}});
    static const std::size_t ask =
        encode(FromFirst(Ask{1, "{\"do\": \"figures\"}", "fleetrun on node 0 (10.1.0.0)"})).size();
    send_to(node, std::make_shared<const FromFirst>(Note{}), ask);
    say(node, figures());
    time_.after(1s, [this, node] { tick(node); });
  }

  Frame figures() const {
    static const Frame frame = [this] {
      RankMetrics rank = {.up = true,
                          .exit_code = {},
                          .progress = Progress{.phase = fleetrun::Phase::training,
                                               .epoch = 3,
                                               .epochs = 90,
                                               .step = 123456,
                                               .steps = 450000,
                                               .loss = 2.3456789,
                                               .images_per_second = 1234.5678},
                          .spent_ns = {},
                          .communication_share = 0.1234567,
                          .heartbeat_age = 0.01234};
      for (std::int64_t& time : rank.spent_ns) time = 123'456'789'012;
      const std::string text =
          to_json(figures_json(std::vector<RankMetrics>(static_cast<std::size_t>(model_.ranks), rank)));
      return std::make_shared<const std::string>(encode(FromNode(Answer{1, text})));
    }();
    return frame;
  }

  void fail(int node) {
    failed_ = true;
    begin("stop of all nodes");
    NodeFailure failure = {.at = in_ns(time_.now()),
                           .error = 0,
                           .cause = "exited",
                           .line = "rank 7 exited with code 1",
                           .block = std::string(1000, 'x'),
                           .exit_code = 1,
                           .signal = 0,
                           .rank = 7,
                           .evidence = {}};
    say(node, Failed{0, failure});
    end(node, failure);
  }

  void end(int node, const std::optional<NodeFailure>& failure) {
    JsonValue ranks = JsonValue::list({});
    for (int rank = 0; rank < model_.ranks; ++rank)
      ranks.items.push_back(JsonValue::object({{"rank", node * model_.ranks + rank},
                                               {"role", "stopped"},
                                               {"how", "killed"},
                                               {"signal", 15},
                                               {"description", "killed by SIGTERM (15)"},
                                               {"pid", 123456},
                                               {"started", "2026-11-25T14:00:00.000Z"},
                                               {"ended", "2026-11-25T14:00:00.000Z"},
                                               {"log", fmt::format("log.node{}/workerlog.{}", node, rank)}}));
    say(node, Ended{.attempt = 0, .failure = failure, .ranks = ranks, .roll_call = {}, .step = 1000});
  }

  const Model model_;
  const int nodes_;
  VirtualTime time_;
  std::vector<Connection> to_first_, to_node_;
  std::vector<std::size_t> unsent_;
  Coordinator coordinator_;
  std::mt19937 random_{1};
  TimePoint busy_until_, incoming_, outgoing_;
  std::vector<Phase> phases_;
  std::size_t longest_ = 0;
  std::string longest_name_;
  int dropped_ = 0, placed_ = 0, started_ = 0, stopped_ = 0, heard_again_ = 0, attempt_ = 0;
  bool failed_ = false, started_once_ = false;
  std::deque<std::pair<int, Frame>> waiting_;  // frames that the first node has not handled yet
  std::optional<TimePoint> wake_;
};

void print(int nodes, int ranks, const Simulation& simulation, const std::vector<Phase>& phases) {
  for (const Phase& phase : phases) {
    const bool steady = std::string(phase.name) == "training";
    if (steady && &phase == &phases.back()) continue;
    const double per = steady ? phase.seconds() : 1;
    fmt::print("{:>6} {:>7}  {:18} {:>9.0f} {:>9.0f} {:>11.3f} {:>11.3f} {:>11.1f} {:>10.1f} {:>9.2f}\n",
               nodes, nodes * ranks, steady ? "training, 1 s" : phase.name,
               static_cast<double>(phase.in) / per, static_cast<double>(phase.out) / per,
               static_cast<double>(phase.bytes_in) / per / 1e6,
               static_cast<double>(phase.bytes_out) / per / 1e6,
               static_cast<double>(phase.bytes_in + phase.bytes_out) / per / nodes / 1e3,
               Milliseconds(phase.busy).count() / per, steady ? 1.0 : phase.seconds());
  }
  fmt::print("{:>6} {:>7}  longest message: {} with {:.3f} MB of 1.048 MB; peers dropped: {}\n\n", nodes,
             nodes * ranks, simulation.longest_name(),
             static_cast<double>(simulation.longest_message()) / 1e6, simulation.dropped());
}

void run(int nodes, const Model& model) {
  Simulation simulation(nodes, model);
  try {
    print(nodes, model.ranks, simulation, simulation.run());
  } catch (const Error& error) {
    fmt::print("{:>6} {:>7}  breaks: {}\n\n", nodes, nodes * model.ranks, error.message());
  }
  std::fflush(stdout);
}

}  // namespace
}  // namespace fleetrun::launch

// Arguments: latency in µs, bandwidth in Gbit/s, loss of packets, ranks of each node, then numbers of nodes.
int main(int count, char** words) {
  if (count < 6) {
    std::fputs("usage: bench_coordinator_scale LATENCY_US GBIT_S LOSS RANKS NODES...\n", stderr);
    return 2;
  }
  const fleetrun::launch::Model model = {
      .ranks = std::atoi(words[4]),
      .latency = std::chrono::nanoseconds(static_cast<std::int64_t>(std::atof(words[1]) * 1000)),
      .bytes_per_second = std::atof(words[2]) * 1e9 / 8,
      .loss = std::atof(words[3])};
  fmt::print("{:>6} {:>7}  {:18} {:>9} {:>9} {:>11} {:>11} {:>11} {:>10} {:>9}\n", "nodes", "ranks", "phase",
             "msgs in", "msgs out", "MB in", "MB out", "kB per node", "CPU ms", "seconds");
  for (int i = 5; i < count; ++i) fleetrun::launch::run(std::atoi(words[i]), model);
  return 0;
}
