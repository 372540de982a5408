#include "launch/serve/shared_control.h"

#include <algorithm>
#include <memory>
#include <utility>

#include <fmt/format.h>

#include "base/error/error.h"
#include "base/json/json_reader.h"
#include "launch/cli/flags/rank_set.h"
#include "launch/loop/timer.h"
#include "launch/nodes/places.h"

namespace fleetrun::launch {
namespace {

using Kind = JsonValue::Kind;

constexpr auto kFollowerPause =
    std::chrono::seconds(2);  // who has not asked for so long has left; they ask 4 times a second
constexpr auto kLastPieces = std::chrono::seconds(4);  // for followers to get the ends of logs

std::string text_in(const JsonValue& object, const char* key) {
  const JsonValue* const value = object.find(key, Kind::text);
  return value == nullptr ? "" : value->text;
}

// The wanted ones of a range: "3,4,7"; "" when there are none.
std::string ranks_within(const RankSet& wanted, const RankRange& range) {
  std::string text;
  for (int rank = range.first; rank <= range.last(); ++rank)
    if (wanted.contains(rank)) text += (text.empty() ? "" : ",") + std::to_string(rank);
  return text;
}

std::int64_t attempt_in(const JsonValue& object) {
  const JsonValue* const attempt = object.find("attempt", Kind::integer);
  return attempt == nullptr ? 0 : attempt->integer;
}

// Whether a follower who has been given this will find more: the rest of a log, or the log of the next attempt.
bool has_more(const JsonValue& answer) {
  const JsonValue* const pieces = answer.find("logs", Kind::list);
  return pieces != nullptr &&
         std::any_of(pieces->items.begin(), pieces->items.end(), [&](const JsonValue& piece) {
           return !text_in(piece, "text").empty() || attempt_in(piece) < attempt_in(answer);
         });
}

}  // namespace

SharedControl::SharedControl(EventLoop& loop, NodeSession& nodes, const RunControl& own)
    : loop_(loop), nodes_(nodes), own_(own) {}

void SharedControl::answer(const std::string& request, const std::string& sender, const Reply& reply) {
  const JsonDocument document = read_json(request);
  const std::string what = text_in(document.root, "do");
  try {
    if (what == "ps" && nodes_.is_first()) return ps(sender, reply);
    if (what == "signal") return signal(document.root, sender, reply);
    if (what == "log") return log(document.root, sender, reply);
    reply(own_.answer(request, sender));
  } catch (const Error& error) {
    reply(to_json(refusal(error.message())));
  }
}

// Each of these nodes; this one answers at once.
void SharedControl::ask(const std::map<int, std::string>& requests, const std::string& sender,
                        const Done& done) {
  struct Open {
    std::size_t left = 0;
    NodeAnswers answers;
  };
  const auto open = std::make_shared<Open>();  // shared by the callbacks
  open->left = requests.size();
  for (const auto& [node, request] : requests) {
    const auto take = [open, done, number = node](const std::optional<std::string>& text) {
      if (text) open->answers[number] = read_json(*text).root;
      if (--open->left == 0) done(open->answers);
    };
    if (node == nodes_.placed().node_rank)
      take(own_.answer(request, sender));
    else
      nodes_.ask(node, request, sender, take);
  }
}

void SharedControl::ps(const std::string& sender, const Reply& reply) {
  std::map<int, std::string> requests;
  for (int node = 0; node < std::ssize(nodes_.placed().nodes); ++node)
    requests[node] = to_json(JsonValue::object({{"do", "ps"}}));
  ask(requests, sender,
      [this, reply](const NodeAnswers& answers) { reply(to_json(merge_ps(nodes_.placed(), answers))); });
}

std::optional<std::string> SharedControl::objection_to(const RankSet& wanted) const {
  const Placed& placed = nodes_.placed();
  const RankRange all = {0, world_of(placed)}, own = ranks_of_node(placed, placed.node_rank);
  if (const auto other = rank_beyond(wanted, all.first, all.last()))
    return fmt::format("the run has the ranks {} to {}, not {}", all.first, all.last(), *other);
  const auto other = rank_beyond(wanted, own.first, own.last());
  if (!other || nodes_.is_first()) return std::nullopt;
  return fmt::format("this node has the ranks {} to {}, not {}; {} reaches all ranks", own.first, own.last(),
                     *other, name_of_node(placed, 0));
}

// By node: those that this node may ask.
std::map<int, std::string> SharedControl::ranks_by_node(const RankSet& wanted) const {
  const Placed& placed = nodes_.placed();
  std::map<int, std::string> ranks;
  for (int node = 0; node < std::ssize(placed.nodes); ++node) {
    if (!nodes_.is_first() && node != placed.node_rank) continue;
    const std::string some = ranks_within(wanted, ranks_of_node(placed, node));
    if (!some.empty()) ranks[node] = some;
  }
  return ranks;
}

void SharedControl::signal(const JsonValue& request, const std::string& sender, const Reply& reply) {
  const std::string chosen = text_in(request, "ranks");
  const RankSet wanted = parse_ranks("ranks", chosen.empty() ? "all" : chosen);
  if (const auto why = objection_to(wanted)) return reply(to_json(refusal(*why)));
  const std::map<int, std::string> ranks = ranks_by_node(wanted);
  std::map<int, std::string> requests;
  for (const auto& [node, some] : ranks) {
    JsonValue part = request;
    std::erase_if(part.members, [](const JsonMember& member) { return member.key == "ranks"; });
    part.add("ranks", some);
    requests[node] = to_json(part);
  }
  if (requests.empty()) return reply(own_.answer(to_json(request), sender));
  ask(requests, sender, [this, ranks, reply](const NodeAnswers& answers) {
    reply(to_json(merge_signal(nodes_.placed(), ranks, answers)));
  });
}

// The node that the reader knows from the file .nodes. A node has the same address and log folder in every attempt, while its number may change.
std::optional<int> SharedControl::node_in(const JsonValue& request) const {
  const JsonValue* const node = request.find("node", Kind::object);
  if (node == nullptr) throw Error(ErrorKind::usage, "found no node, wanted the one that has the logs");
  NodePlace wanted;
  wanted.address = text_in(*node, "address");
  wanted.logs = text_in(*node, "logs");
  return number_of_node(nodes_.placed(), wanted);
}

void SharedControl::log(const JsonValue& request, const std::string& sender, const Reply& reply) {
  if (!nodes_.is_first())
    return reply(
        to_json(refusal(fmt::format("{} shows the logs of all ranks", name_of_node(nodes_.placed(), 0)))));
  const auto node = node_in(request);
  begin_answer(request);
  if (!node) return reply(to_json(JsonValue::object({{"gone", true}, {"over", over_}})));
  const std::string name = name_of_node(nodes_.placed(), *node);  // it may have another number by then
  ask({{*node, to_json(request)}}, sender, [this, request, reply, node, name](const NodeAnswers& answers) {
    JsonValue answer = answers.empty()
                           ? JsonValue::object({{"error", name + " does not answer"}, {"silent", true}})
                           : answers.begin()->second;
    end_answer(request, *node, has_more(answer));
    answer.add("over", over_);
    reply(to_json(answer));
  });
}

// The run waits at its end for those who follow logs, until each has been given everything of all nodes that it follows.
void SharedControl::begin_answer(const JsonValue& request) {
  const TimePoint now = Clock::now();
  std::erase_if(followers_, [&](const auto& one) { return now - one.second.asked > kFollowerPause; });
  if (const std::string name = text_in(request, "follower"); !name.empty()) followers_[name].asked = now;
}

void SharedControl::end_answer(const JsonValue& request, int node, bool has_more) {
  const auto follower = followers_.find(text_in(request, "follower"));
  if (follower == followers_.end() || !over_ || has_more) return;
  follower->second.complete.insert(node);
  const JsonValue* const nodes = request.find("nodes", Kind::integer);
  if (nodes == nullptr || std::cmp_greater_equal(follower->second.complete.size(), nodes->integer))
    followers_.erase(follower);
}

void SharedControl::finish() {
  over_ = true;
  const TimePoint end = Clock::now() + kLastPieces;
  Timer tick(loop_);  // so that the loop returns
  const std::function<void()> wake = [&] { tick.call_at(Clock::now() + kFollowerPause / 10, wake); };
  wake();
  while (Clock::now() < end && std::any_of(followers_.begin(), followers_.end(), [](const auto& follower) {
           return Clock::now() - follower.second.asked < kFollowerPause;
         }))
    loop_.run_one();
}

}  // namespace fleetrun::launch
