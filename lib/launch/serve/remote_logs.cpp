#include "launch/serve/remote_logs.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "base/error/error.h"
#include "base/json/json_reader.h"
#include "base/text/printable.h"
#include "launch/logs/log_names.h"
#include "launch/serve/control_client.h"

namespace fleetrun::launch {
namespace {

constexpr std::size_t kLongestWhy = 2000;  // bytes of what a run says

JsonValue name_in_requests(const NodePlace& node) {
  return JsonValue::object({{"address", node.address}, {"logs", node.logs}});
}

// Differs after each change: every change makes a new file.
std::string stamp_of(const std::string& path) {
  struct stat facts {};
  if (::stat(path.c_str(), &facts) != 0) return "";
  return fmt::format("{} {} {}", facts.st_ino, facts.st_mtim.tv_sec, facts.st_mtim.tv_nsec);
}

bool says_gone(const JsonValue& answer) {
  const JsonValue* const gone = answer.find("gone", JsonValue::Kind::boolean);
  return gone != nullptr && gone->boolean;
}

}  // namespace

std::string place_of_log(const Placed& places, int node, int local_rank) {
  return fmt::format("{}/workerlog.{} on {}", places.nodes.at(static_cast<std::size_t>(node)).logs,
                     local_rank, name_of_node(places, node));
}

RemoteLogs::RemoteLogs(std::string folder, const std::optional<Placed>& places, Choose choose, Output output)
    : folder_(std::move(folder)),
      follower_(std::to_string(::getpid())),
      choose_(std::move(choose)),
      output_(std::move(output)) {
  if (places) begin_era(*places, RemoteLog::kPresent);
}

bool RemoteLogs::Era::is_complete() const {
  return std::ranges::all_of(nodes, [](const auto& one) { return one.second.complete; });
}

void RemoteLogs::begin_era(const Placed& places, int attempt) {
  Era era = {.places = places, .nodes = {}};
  for (auto& [node, logs] : choose_(places, attempt)) era.nodes[node].logs = std::move(logs);
  eras_.push_back(std::move(era));
}

// To be called before an answer is used: the run writes .nodes before its answers follow the new places.
void RemoteLogs::note_changes() {
  if (eras_.empty()) return;
  const std::string stamp = stamp_of(fmt::format("{}/{}", folder_, kNodesName));
  if (std::exchange(stamp_, stamp) == stamp) return;
  for (const Placed& places : later_places(folder_, eras_.back().places.attempt)) {
    for (auto& [number, node] : eras_.back().nodes)
      for (RemoteLog& log : node.logs) log.end_after(places.attempt - 1);
    begin_era(places, places.attempt);
  }
}

bool RemoteLogs::empty() const {
  return std::ranges::all_of(eras_, [](const Era& era) { return era.nodes.empty(); });
}

bool RemoteLogs::look() {
  note_changes();
  if (eras_.empty()) return false;
  bool news = false;
  Era& era = eras_.front();
  for (auto& [number, node] : era.nodes)
    if (!node.complete && look(era.places, number, node)) news = true;
  if (eras_.size() == 1 || !era.is_complete()) return news;
  eras_.pop_front();
  return true;
}

bool RemoteLogs::look(const Placed& places, int number, Node& node) {
  const NodePlace& place = places.nodes.at(static_cast<std::size_t>(number));
  JsonValue request = log_request(node.logs);
  request.add("node", name_in_requests(place));
  request.add("follower", follower_);
  request.add("nodes", static_cast<std::int64_t>(eras_.front().nodes.size()));
  ControlClient client(folder_);
  const JsonValue answer = read_json(client.ask(to_json(request))).root;
  note_changes();
  const JsonValue* const why = answer.find("error", JsonValue::Kind::text);
  if (says_gone(answer)) {
    leave(name_of_node(places, number), place.logs, node);
    return true;
  }
  if (why == nullptr) return take(answer, places, number, node);
  const std::string words = printable_start(why->text, kLongestWhy);
  if (answer.find("silent") == nullptr) throw Error(ErrorKind::usage, words);
  if (!std::exchange(node.said_silent, true)) output_.say(words);
  return false;
}

// What the node wrote since we last asked cannot be had here.
void RemoteLogs::leave(const std::string& name, const std::string& logs, Node& node) {
  for (RemoteLog& log : node.logs) output_.show(log.finish());
  output_.say(fmt::format("{} has left the run; its folder {}/ may have more lines", name, logs));
  node.logs.clear();
  node.complete = true;
}

bool RemoteLogs::take(const JsonValue& answer, const Placed& places, int number, Node& node) {
  const LogAnswer found = read_log_answer(answer, node.logs.size());
  if (found.pieces == nullptr) return false;
  over_ = over_ || found.over;
  for (std::size_t i = 0; i < node.logs.size(); ++i) {
    RemoteLog& log = node.logs[i];
    output_.show(log.take(found.pieces->items[i], found.newest, Clock::now()));
    if (log.lost_rest())  // its fleetrun has begun anew, and has moved the logs of the run before
      output_.say(fmt::format("{} has moved the log of rank {}; its folder {}/previous/ may have more lines",
                              name_of_node(places, number), log.rank(),
                              places.nodes.at(static_cast<std::size_t>(number)).logs));
  }
  const bool news = std::ranges::any_of(node.logs, [](const RemoteLog& log) { return log.has_news(); });
  std::erase_if(node.logs, [](const RemoteLog& log) { return log.missing() || log.ended(); });
  node.complete = node.logs.empty() || (found.over && !news);
  return news;
}

bool RemoteLogs::has_all() const { return over_ && eras_.size() == 1 && eras_.front().is_complete(); }

// Those of the first look: a log may grow faster than we read it.
void RemoteLogs::look_to_present_ends() {
  bool news = look();
  const int attempt = eras_.front().places.attempt;
  std::map<std::pair<int, bool>, std::int64_t> ends;
  for (const auto& [number, node] : eras_.front().nodes)
    for (const RemoteLog& log : node.logs) ends[{log.rank(), log.of_errors()}] = log.end();
  const auto is_shown = [&](const RemoteLog& log) {
    return log.shown() >= ends[{log.rank(), log.of_errors()}];
  };
  const auto all_shown = [&] {
    return std::ranges::all_of(
        eras_.front().nodes, [&](const auto& one) { return std::ranges::all_of(one.second.logs, is_shown); });
  };
  while (news && eras_.front().places.attempt == attempt && !all_shown()) news = look();
  finish();
}

void RemoteLogs::finish() {
  for (Era& era : eras_)
    for (auto& [number, node] : era.nodes)
      for (RemoteLog& log : node.logs) output_.show(log.finish());
}

std::vector<std::string> RemoteLogs::unread() const {
  std::vector<std::string> places;
  for (const Era& era : eras_)
    for (const auto& [number, node] : era.nodes) {
      if (node.complete) continue;
      for (const RemoteLog& log : node.logs)
        if (!log.of_errors()) places.push_back(place_of_log(era.places, number, log.local_rank()));
    }
  return places;
}

}  // namespace fleetrun::launch
