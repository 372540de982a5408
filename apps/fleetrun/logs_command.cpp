#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <filesystem>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "base/error/error.h"
#include "base/error/log.h"
#include "base/text/name_ranks.h"
#include "commands.h"
#include "launch/cli/command_line.h"
#include "launch/cli/log_query.h"
#include "launch/console/log_follower.h"
#include "launch/console/output_stream.h"
#include "launch/logs/folder_watch.h"
#include "launch/logs/log_folder.h"
#include "launch/logs/log_names.h"
#include "launch/logs/log_times.h"
#include "launch/logs/rank_logs.h"
#include "launch/loop/event_loop.h"
#include "launch/nodes/places.h"
#include "launch/serve/remote_logs.h"

namespace fleetrun {
namespace {

using launch::Clock;
using launch::EventLoop;
using launch::FolderWatch;
using launch::LinePlace;
using launch::LogFollower;
using launch::LogPrefix;
using launch::LogQuery;
using launch::LogText;
using launch::OutputStream;
using launch::Placed;
using launch::RankLog;

constexpr auto kLookPause = std::chrono::seconds(1);  // between looks whether the run is over or begins anew
constexpr auto kAskPause = std::chrono::milliseconds(250);   // between questions for the logs of other nodes
constexpr auto kPiecePause = std::chrono::milliseconds(10);  // the same while there is more: at most 6 MB/s
const launch::Patience kNoHurry = {std::chrono::hours(1000), [] { return false; }};  // a reader may be slow

std::string place_of(int rank, const Placed& places) {
  const int node = *launch::node_of_rank(places, rank);
  return launch::place_of_log(places, node, rank - launch::ranks_of_node(places, node).first);
}

Error cannot_show(int rank, const Placed& places) {
  const std::string place = place_of(rank, places);
  if (places.node_rank == 0)
    return {ErrorKind::missing, fmt::format("the run is over; the log of rank {} is {}", rank, place)};
  return {
      ErrorKind::usage, fmt::format("the log of rank {} is {}", rank, place),
      fmt::format("while the run goes on, {} shows the logs of all ranks", launch::name_of_node(places, 0))};
}

bool can_ask(const LogQuery& query, const Placed& places) {
  return places.node_rank == 0 && launch::is_in_use(query.folder);
}

// `last`: the last rank with a log in the folder.
// Throws Error when the user named ranks that the run does not have, or that cannot be shown here.
void require_shown(const LogQuery& query, const std::optional<Placed>& places, int last) {
  if (!query.ranks) return;
  for (const auto& range : query.ranks->ranges)
    if (!places && range.second > last)
      throw Error(ErrorKind::missing,
                  fmt::format("{}/ has no log of rank {}; the last log is that of rank {}", query.folder,
                              range.second, last));
  if (!places) return;
  const launch::RankRange own = launch::ranks_of_node(*places, places->node_rank);
  for (const int rank : query.ranks->below(launch::world_of(*places), "--rank"))
    if (!query.ranks->all && !own.contains(rank) && !can_ask(query, *places))
      throw cannot_show(rank, *places);
}

// More than 200 lines: it shows the logs of this node and of others as one, over all attempts.
// Shows logs, and while the run goes on what is added to them. Ranks of other nodes are shown on the first node, while the run goes on.
class LogViewer {
 public:
  explicit LogViewer(const LogQuery& query)
      : query_(query),
        newest_(launch::newest_logs(query.folder)),
        places_(places_in(newest_)),
        out_(loop_, STDOUT_FILENO),
        logs_(logs_in(newest_)),
        remote_(query.folder, places_,
                [this](const Placed& places, int attempt) { return choose_remote(places, attempt); },
                {.show = [this](const std::string& text) { out_.write(text); },
                 .say = [](const std::string& line) { log_line("fleetrun", line); }}) {
    require_shown(query, places_, logs_.back().log.rank);
    if (remote_.empty() && count_wanted(places_) == 0)
      throw Error(ErrorKind::missing,
                  fmt::format("{}/ has no log of the ranks of --rank={}", query.folder, query.ranks->text));
    for (Log& log : logs_) open(log, fmt::format("{}/workerlog.{}", newest_, log.log.name()), places_);
    if (!query.since) return;
    std::set<std::string> names;
    for (const Log& log : logs_) names.insert(log.log.name());
    const launch::LogPlaces starts = launch::places_in_logs(query.folder, names, *query.since);
    for (Log& log : logs_)
      if (log.follower != nullptr) log.follower->start_at(starts.at(log.log.name()));
  }

  void show() {
    const bool follow = query_.follow && launch::is_in_use(query_.folder);
    if (follow) {
      const FolderWatch watch(loop_, query_.folder, FolderWatch::kUnseen, [this] { look(); });
      look();
      look_again_later();
      if (places_) follow_remote();
      loop_.run();
    }
    if (!follow) copy_by_time();
    for (const Log& log : logs_) finish(log);
    if (follow) {
      remote_.finish();
      say_where_rest_is();
    } else if (!remote_.empty()) {
      remote_.look_to_present_ends();
    }
    out_.drain(kNoHurry);
    if (out_.problem() != 0 && out_.problem() != EPIPE)  // a reader may have enough
      throw Error(ErrorKind::io, "writing to stdout: " + describe_errno(out_.problem()));
  }

 private:
  struct Log {  // of a rank of this node
    RankLog log;
    std::uint64_t inode = 0;
    LogFollower* follower = nullptr;  // none: in this attempt, nobody wants the log
  };

  static std::vector<Log> logs_in(const std::string& folder) {
    std::vector<Log> logs;
    for (const RankLog& log : launch::find_logs(folder)) logs.push_back({.log = log});
    return logs;
  }

  // The places of the attempt whose logs are in this folder. None if the run has one node.
  std::optional<Placed> places_in(const std::string& folder) const {
    auto places = launch::read_places(folder);
    return places || folder == query_.folder ? places : launch::read_places(query_.folder);
  }

  // The files count the ranks of this node.
  static int first_rank(const std::optional<Placed>& places) {
    return places ? launch::ranks_of_node(*places, places->node_rank).first : 0;
  }

  bool is_wanted(const RankLog& log, const std::optional<Placed>& places) const {
    return !query_.ranks || query_.ranks->contains(first_rank(places) + log.rank);
  }

  std::ptrdiff_t count_wanted(const std::optional<Placed>& places) const {
    return std::ranges::count_if(logs_, [&](const Log& log) { return is_wanted(log.log, places); });
  }

  // Ranks of other nodes that this node shows.
  std::vector<int> ranks_elsewhere(const Placed& places) const {
    std::vector<int> ranks;
    if (!query_.ranks || !can_ask(query_, places)) return ranks;
    const launch::RankRange own = launch::ranks_of_node(places, places.node_rank);
    for (int rank = 0; rank < launch::world_of(places); ++rank)
      if (!own.contains(rank) && query_.ranks->contains(rank)) ranks.push_back(rank);
    return ranks;
  }

  bool shows_many(const std::optional<Placed>& places) const {
    std::set<int> ranks;
    for (const Log& log : logs_)
      if (is_wanted(log.log, places)) ranks.insert(first_rank(places) + log.log.rank);
    return ranks.size() + (places ? ranks_elsewhere(*places).size() : 0) > 1;
  }

  std::string path_of(const Log& log) const {
    return fmt::format("{}/workerlog.{}", query_.folder, log.log.name());
  }

  launch::RemoteLogs::ByNode choose_remote(const Placed& places, int attempt) const {
    const bool first = attempt == launch::RemoteLog::kPresent;
    if (!first) say_what_is_not_shown(places);
    launch::RemoteLogs::ByNode logs;
    const bool many = shows_many(places);
    for (const int rank : ranks_elsewhere(places)) {
      const int node = *launch::node_of_rank(places, rank);
      const int local_rank = rank - launch::ranks_of_node(places, node).first;
      for (const bool errors : {false, true}) {
        const auto shown_attempt = std::make_shared<int>(0);
        logs[node].push_back(
            {{.rank = rank,
              .local_rank = local_rank,
              .errors = errors,
              .attempt = attempt,
              .since = first ? since() : std::nullopt},
             text_of(
                 [=] { return LinePlace{.rank = rank, .local_rank = local_rank, .attempt = *shown_attempt}; },
                 many, true),
             shown_attempt});
      }
    }
    return logs;
  }

  std::optional<std::int64_t> since() const {
    if (!query_.since) return std::nullopt;
    return std::chrono::duration_cast<std::chrono::seconds>(query_.since->time_since_epoch()).count();
  }

  // When the nodes of an elastic run have changed. They may change again, so this ends nothing.
  void say_what_is_not_shown(const Placed& places) const {
    if (!query_.ranks || query_.ranks->all) return;
    const int world = launch::world_of(places);
    std::vector<int> missing;
    for (const auto& [begin, end] : query_.ranks->ranges)
      for (int rank = std::max(begin, world); rank <= end; ++rank) missing.push_back(rank);
    if (!missing.empty())
      log_line("fleetrun",
               fmt::format("the run now has the ranks 0 to {}; nothing more comes from {} until nodes join",
                           world - 1, name_ranks(missing)));
    if (can_ask(query_, places)) return;
    const launch::RankRange own = launch::ranks_of_node(places, places.node_rank);
    for (int rank = 0; rank < world; ++rank)
      if (query_.ranks->contains(rank) && !own.contains(rank))
        log_line("fleetrun", fmt::format("the log of rank {} is now {}", rank, place_of(rank, places)));
  }

  LogText text_of(const std::function<LinePlace()>& place, bool many, bool among_others) const {
    const LogPrefix usual = {many ? launch::kUsualPrefix : ""};
    const LogPrefix prefix = query_.prefix.value_or(usual);
    std::function<std::string()> front;
    if (!prefix.text.empty() || among_others) front = [prefix, place] { return expand(prefix, place()); };
    std::function<bool(const std::string&)> wanted;
    if (query_.pattern)
      wanted = [pattern = *query_.pattern](const std::string& line) { return pattern.is_in(line); };
    return LogText(std::move(front), std::move(wanted));
  }

  void open(Log& log, const std::string& path, const std::optional<Placed>& places) {
    log.follower = nullptr;
    log.inode = launch::inode_of(path);
    if (!is_wanted(log.log, places)) return;
    const int local_rank = log.log.rank, rank = first_rank(places) + local_rank;
    const int attempt =
        launch::attempt_in(std::filesystem::path(path).parent_path(), places ? places->attempt : 0);
    const auto place = [=] { return LinePlace{.rank = rank, .local_rank = local_rank, .attempt = attempt}; };
    const bool many = shows_many(places);
    followers_.push_back(std::make_unique<LogFollower>(
        loop_, out_, path, text_of(place, many, many || count_wanted(places) > 1)));
    log.follower = followers_.back().get();
    log.inode = log.follower->inode();  // of what was opened: a restart may have moved the file since
  }

  static void finish(const Log& log) {
    if (log.follower != nullptr) log.follower->finish(kNoHurry);
  }

  // What ranks wrote at the same time stands together. What is newer than the last entry follows, by ranks.
  void copy_by_time() {
    launch::visit_log_times(query_.folder, [this](const std::string& name, std::int64_t size) {
      for (const Log& log : logs_)
        if (log.follower != nullptr && log.log.name() == name) log.follower->copy_to(size, kNoHurry);
    });
  }

  void look() {
    for (const Log& log : logs_)
      if (log.follower != nullptr) log.follower->look();
  }

  void look_again_later() {
    loop_.call_at(Clock::now() + kLookPause, [this] {
      const bool over = !launch::is_in_use(query_.folder) || out_.problem() != 0 ||
                        out_.has_lost_reader();  // before the look at the last attempt
      for (Log& log : logs_) follow_next_attempts(log);
      if (over) return loop_.stop();
      look();
      look_again_later();
    });
  }

  // Until the run has given everything. While the reader takes nothing, nothing is asked for.
  void follow_remote() {
    bool news = false;
    try {
      news = out_.idle() && remote_.look();
    } catch (const Error&) {
      if (launch::is_in_use(query_.folder)) throw;
      return;  // the run has just ended
    }
    const Clock::duration pause = !news ? kAskPause : remote_.is_over() ? Clock::duration() : kPiecePause;
    if (!remote_.has_all()) loop_.call_at(Clock::now() + pause, [this] { follow_remote(); });
  }

  void say_where_rest_is() const {
    if (remote_.has_all() || out_.problem() != 0) return;
    for (const std::string& place : remote_.unread()) log_line("fleetrun", "there may be more in " + place);
  }

  // A restart moves the log away and begins another one; there may have been several since the last look. The ranks of
  // an attempt have the numbers that its places give them, which the run writes before it begins the logs.
  void follow_next_attempts(Log& log) {
    const std::uint64_t inode = launch::inode_of(path_of(log));
    if (inode == 0 || inode == log.inode) return;
    for (const std::string& path : launch::attempts_since(query_.folder, log.log.name(), log.inode)) {
      finish(log);
      open(log, path, places_in(std::filesystem::path(path).parent_path()));
    }
    const auto places = places_in(query_.folder);
    if (launch::inode_of(path_of(log)) != inode) return;  // one more restart, for the next look
    finish(log);
    open(log, path_of(log), places);
  }

  const LogQuery& query_;
  const std::string newest_;            // the folder of the newest logs at the start
  const std::optional<Placed> places_;  // at the start; none: the run has one node
  EventLoop loop_;
  OutputStream out_;
  std::vector<Log> logs_;
  std::vector<std::unique_ptr<LogFollower>> followers_;  // also earlier ones: the loop may still call them
  launch::RemoteLogs remote_;
};

}  // namespace

int run_logs_command(const FoundFlags& found, const Environment& environment) {
  const LogQuery query =
      parse_log_query(found, find_log_dir(found, environment), std::chrono::system_clock::now());
  LogViewer(query).show();
  return 0;
}

}  // namespace fleetrun
