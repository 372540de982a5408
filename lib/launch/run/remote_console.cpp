#include "launch/run/remote_console.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include <fmt/format.h>

#include "base/json/json_reader.h"
#include "base/text/plural.h"
#include "launch/cli/flags/log_prefix.h"
#include "launch/console/console_view.h"
#include "launch/loop/timer.h"
#include "launch/nodes/places.h"

namespace fleetrun::launch {
namespace {

constexpr auto kAskEvery =
    std::chrono::milliseconds(250);                    // with the most of an answer: 256 KiB/s of each node
constexpr auto kLastPieces = std::chrono::seconds(2);  // for what is left at the end
constexpr std::int64_t kMostBehind = 1 << 20;          // bytes of a log; then some are left out
constexpr std::int64_t kKept = 64 * 1024;              // of these

}  // namespace

RemoteConsole::RemoteConsole(EventLoop& loop, const RunPlan& plan, NodeSession* nodes, Console& console)
    : loop_(loop), plan_(plan), nodes_(nodes), console_(console) {}

void RemoteConsole::begin_attempt(int attempt) {
  attempt_ = attempt;
  shown_.clear();
  if (!plan_.cluster.console.elsewhere.empty() && !std::exchange(asks_, true))
    loop_.call_every(kAskEvery, [this] { ask_all(); });
  for (const int rank : plan_.cluster.console.elsewhere) {
    const int node = *node_of_rank(nodes_->placed(), rank);
    if (shown_.empty() || shown_.back().number != node) shown_.push_back({.number = node, .logs = {}});
    for (const bool errors : {false, true}) shown_.back().logs.push_back(make_log(rank, errors, attempt));
  }
}

RemoteLog RemoteConsole::make_log(int rank, bool errors, int attempt) const {
  const Placed& placed = nodes_->placed();
  const int node = *node_of_rank(placed, rank);
  const LinePlace place = {.rank = rank,
                           .local_rank = rank - ranks_of_node(placed, node).first,
                           .host = placed.nodes[static_cast<std::size_t>(node)].host,
                           .attempt = attempt,
                           .role = plan_.options.role.value};
  const LogPrefix usual = {plan_.cluster.console.shows_many() ? kUsualPrefix : ""};
  const LogPrefix prefix = plan_.options.log_prefix.value.value_or(usual);
  return {{.rank = rank, .local_rank = place.local_rank, .errors = errors, .attempt = attempt, .since = {}},
          LogText(line_start(prefix, place, errors ? console_.err_has_colours : console_.out_has_colours))};
}

// A reader of our output that takes nothing holds up what we ask for, not what we hold.
void RemoteConsole::ask_all() {
  if (!console_.out.idle() || !console_.err.idle()) return;
  for (Node& node : shown_)
    if (!node.asked && !node.logs.empty()) ask(node);
}

void RemoteConsole::ask(Node& node) {
  node.asked = true;
  const auto place = static_cast<std::size_t>(&node - shown_.data());
  nodes_->ask(node.number, to_json(log_request(node.logs)), "fleetrun",
              [this, attempt = attempt_, place](const std::optional<std::string>& answer) {
                take(attempt, place, answer);
              });
}

void RemoteConsole::take(int attempt, std::size_t place, const std::optional<std::string>& answer) {
  if (attempt != attempt_) return;  // of logs that are shown no more
  Node& node = shown_[place];
  node.asked = false;
  node.has_all = true;  // as long as it gives nothing
  if (!answer) return;
  const JsonDocument document = read_json(*answer);
  const LogAnswer pieces = read_log_answer(document.root, node.logs.size());
  if (pieces.pieces == nullptr) return;
  for (std::size_t i = 0; i < node.logs.size(); ++i) show(node.logs[i], pieces.pieces->items[i], attempt);
  node.has_all =
      std::none_of(node.logs.begin(), node.logs.end(), [](const RemoteLog& log) { return log.has_news(); });
  std::erase_if(node.logs, [](const RemoteLog& log) { return log.missing(); });
}

void RemoteConsole::show(RemoteLog& log, const JsonValue& piece, int newest) {
  OutputStream& stream = log.of_errors() ? console_.err : console_.out;
  stream.write_of_rank(log.take(piece, newest, Clock::now()));
  if (log.behind() <= kMostBehind) return;
  console_.say(fmt::format("left out {} of the log of rank {}, which grows faster than it can be shown",
                           plural(log.behind() - kKept, "byte"), log.rank()));
  stream.write_of_rank(log.skip(kKept));
}

void RemoteConsole::finish(const Patience& patience) {
  const TimePoint end = Clock::now() + kLastPieces;
  Timer tick(loop_);  // so that the loop returns
  const std::function<void()> wake = [&] { tick.call_at(Clock::now() + kAskEvery, wake); };
  wake();
  for (Node& node : shown_) node.has_all = false;
  const auto is_done = [](const Node& node) { return node.has_all || node.logs.empty(); };
  while (!std::all_of(shown_.begin(), shown_.end(), is_done) && Clock::now() < end &&
         !patience.interrupted()) {
    for (Node& node : shown_)
      if (!node.asked && !is_done(node)) ask(node);
    if (std::all_of(shown_.begin(), shown_.end(), is_done)) break;
    loop_.run_one();
    if (!console_.out.drain(patience) || !console_.err.drain(patience)) break;
  }
  for (Node& node : shown_)
    for (RemoteLog& log : node.logs)
      (log.of_errors() ? console_.err : console_.out).write_of_rank(log.finish());
  attempt_ = -1;  // what still comes is too late
  shown_.clear();
}

}  // namespace fleetrun::launch
