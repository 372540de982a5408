#include "launch/serve/remote_logs.h"

#include <unistd.h>

#include <algorithm>

#include "base/error/error.h"
#include "base/error/log.h"
#include "base/json/json_reader.h"
#include "base/text/printable.h"
#include "launch/serve/control_client.h"

namespace fleetrun::launch {
namespace {

using Kind = JsonValue::Kind;

constexpr std::size_t kLongestWhy = 2000;  // bytes of what a run says

}  // namespace

RemoteLogs::RemoteLogs(std::string folder, Show show)
    : folder_(std::move(folder)), follower_(std::to_string(::getpid())), show_(std::move(show)) {}

bool RemoteLogs::look() {
  bool news = false;
  for (auto& [rank, node] : nodes_)
    if (!node.complete && look(node)) news = true;
  return news;
}

bool RemoteLogs::look(Node& node) {
  JsonValue request = log_request(node.logs);
  request.add("follower", follower_);
  request.add("nodes", static_cast<std::int64_t>(nodes_.size()));
  ControlClient client(folder_);
  const JsonValue answer = read_json(client.ask(to_json(request))).root;
  const JsonValue* const why = answer.find("error", Kind::text);
  if (why == nullptr) return take(answer, node);
  const std::string words = printable_start(why->text, kLongestWhy);
  if (answer.find("silent") == nullptr) throw Error(ErrorKind::usage, words);
  if (!std::exchange(said_silent_, true)) log_line("fleetrun", words);
  return false;
}

bool RemoteLogs::take(const JsonValue& answer, Node& node) {
  const LogAnswer found = read_log_answer(answer, node.logs.size());
  if (found.pieces == nullptr) return false;
  over_ = over_ || found.over;
  for (std::size_t i = 0; i < node.logs.size(); ++i)
    show_(node.logs[i].take(found.pieces->items[i], found.newest, Clock::now()));
  const bool news =
      std::any_of(node.logs.begin(), node.logs.end(), [](const RemoteLog& log) { return log.has_news(); });
  std::erase_if(node.logs, [](const RemoteLog& log) { return log.missing(); });
  node.complete = node.logs.empty() || (found.over && !news);
  return news;
}

bool RemoteLogs::has_all() const {
  return std::all_of(nodes_.begin(), nodes_.end(), [](const auto& one) { return one.second.complete; });
}

// Those of the first look: a log may grow faster than we read it.
void RemoteLogs::look_to_present_ends() {
  bool news = look();
  std::map<const RemoteLog*, std::int64_t> ends;
  for (const auto& [rank, node] : nodes_)
    for (const RemoteLog& log : node.logs) ends[&log] = log.end();
  const auto is_shown = [](const auto& one) { return one.first->shown() >= one.second; };
  while (news && !std::all_of(ends.begin(), ends.end(), is_shown)) news = look();
  finish();
}

void RemoteLogs::finish() {
  for (auto& [rank, node] : nodes_)
    for (RemoteLog& log : node.logs) show_(log.finish());
}

}  // namespace fleetrun::launch
