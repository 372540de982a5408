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
  bool news = false, all_over = true;
  for (auto& [node, logs] : nodes_) {
    const Found found = look(logs);
    news = news || found.news;
    all_over =
        all_over && found.over;  // each has to say so: one asked earlier in this round may have written since
  }
  has_all_ = all_over && !news;
  return news;
}

RemoteLogs::Found RemoteLogs::look(std::vector<RemoteLog>& logs) {
  if (logs.empty()) return {.over = true};
  JsonValue request = log_request(logs);
  request.add("follower", follower_);
  request.add("nodes", static_cast<std::int64_t>(nodes_.size()));
  ControlClient client(folder_);
  const JsonValue answer = read_json(client.ask(to_json(request))).root;
  const JsonValue* const why = answer.find("error", Kind::text);
  if (why == nullptr) return take(answer, logs);
  const std::string words = printable_start(why->text, kLongestWhy);
  if (answer.find("silent") == nullptr) throw Error(ErrorKind::usage, words);
  if (!std::exchange(said_silent_, true)) log_line("fleetrun", words);
  return {};
}

RemoteLogs::Found RemoteLogs::take(const JsonValue& answer, std::vector<RemoteLog>& logs) {
  const LogAnswer found = read_log_answer(answer, logs.size());
  if (found.pieces == nullptr) return {};
  over_ = over_ || found.over;
  for (std::size_t i = 0; i < logs.size(); ++i)
    show_(logs[i].take(found.pieces->items[i], found.newest, Clock::now()));
  std::erase_if(logs, [](const RemoteLog& log) { return log.missing(); });
  const bool news =
      std::any_of(logs.begin(), logs.end(), [](const RemoteLog& log) { return log.has_news(); });
  return {.news = news, .over = found.over};
}

// Those of the first look: a log may grow faster than we read it.
void RemoteLogs::look_to_present_ends() {
  bool news = look();
  std::map<const RemoteLog*, std::int64_t> ends;
  for (const auto& [node, logs] : nodes_)
    for (const RemoteLog& log : logs) ends[&log] = log.end();
  const auto is_shown = [](const auto& one) { return one.first->shown() >= one.second; };
  while (news && !std::all_of(ends.begin(), ends.end(), is_shown)) news = look();
  finish();
}

void RemoteLogs::finish() {
  for (auto& [node, logs] : nodes_)
    for (RemoteLog& log : logs) show_(log.finish());
}

}  // namespace fleetrun::launch
