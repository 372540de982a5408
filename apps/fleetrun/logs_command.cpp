#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <memory>
#include <optional>

#include <fmt/format.h>

#include "base/error/error.h"
#include "base/error/log.h"
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

// "/home/me/log/workerlog.1 on node 1 (10.0.0.2, beta)"
std::string place_of(int rank, const Placed& places) {
  const int node = *launch::node_of_rank(places, rank);
  return fmt::format("{}/workerlog.{} on {}", places.nodes[static_cast<std::size_t>(node)].logs,
                     rank - launch::ranks_of_node(places, node).first, launch::name_of_node(places, node));
}

Error cannot_show(int rank, const Placed& places) {
  const std::string place = place_of(rank, places);
  if (places.node_rank == 0)
    return {ErrorKind::missing, fmt::format("the run is over; the log of rank {} is {}", rank, place)};
  return {
      ErrorKind::usage, fmt::format("the log of rank {} is {}", rank, place),
      fmt::format("while the run goes on, {} shows the logs of all ranks", launch::name_of_node(places, 0))};
}

// Ranks that the user named and other nodes have. Throws Error when they cannot be shown here.
std::vector<int> ranks_elsewhere(const LogQuery& query, const std::optional<Placed>& places) {
  std::vector<int> ranks;
  if (!places || !query.ranks) return ranks;
  const bool can_ask = places->node_rank == 0 && launch::is_in_use(query.folder);
  const launch::RankRange own = launch::ranks_of_node(*places, places->node_rank);
  for (const int rank : query.ranks->below(launch::world_of(*places), "--rank")) {
    if (own.contains(rank)) continue;
    if (can_ask)
      ranks.push_back(rank);
    else if (!query.ranks->all)
      throw cannot_show(rank, *places);
  }
  return ranks;
}

// Shows logs, and while the run goes on what is added to them. Ranks of other nodes are shown on the first node, while the run goes on.
class LogViewer {
 public:
  explicit LogViewer(const LogQuery& query)
      : query_(query),
        places_(launch::read_places(query.folder)),
        out_(loop_, STDOUT_FILENO),
        remote_(query.folder, [this](const std::string& text) { out_.write(text); }) {
    const std::string newest = launch::newest_logs(query.folder);
    for (const RankLog& log : launch::find_logs(newest))
      if (!query.ranks || query.ranks->contains(first_rank() + log.rank)) logs_.push_back({.log = log});
    elsewhere_ = ranks_elsewhere(query, places_);
    if (logs_.empty() && elsewhere_.empty())
      throw Error(ErrorKind::missing,
                  fmt::format("{}/ has no log of the ranks of --rank={}", query.folder, query.ranks->text));
    shows_many_ = !elsewhere_.empty() ? elsewhere_.size() > 1 || !logs_.empty()
                                      : logs_.front().log.rank != logs_.back().log.rank;
    for (const int rank : elsewhere_) add_remote(rank);
    for (Log& log : logs_) open(log, fmt::format("{}/workerlog.{}", newest, log.log.name()));
    if (!query.since) return;
    for (Log& log : logs_)
      log.follower->start_at(launch::place_in_log(query.folder, log.log.name(), *query.since));
  }

  void show() {
    const bool follow = query_.follow && launch::is_in_use(query_.folder);
    if (follow) {
      const FolderWatch watch(loop_, query_.folder, FolderWatch::kUnseen, [this] { look(); });
      look();
      look_again_later();
      if (!remote_.empty()) follow_remote();
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
  struct Log {
    RankLog log;
    std::uint64_t inode = 0;
    LogFollower* follower = nullptr;
  };

  // The files count the ranks of this node.
  int first_rank() const { return places_ ? launch::ranks_of_node(*places_, places_->node_rank).first : 0; }

  std::string path_of(const Log& log) const {
    return fmt::format("{}/workerlog.{}", query_.folder, log.log.name());
  }

  void add_remote(int rank) {
    const int node = *launch::node_of_rank(*places_, rank);
    const int local_rank = rank - launch::ranks_of_node(*places_, node).first;
    const auto seconds = [](auto time) {
      return std::chrono::duration_cast<std::chrono::seconds>(time.time_since_epoch()).count();
    };
    for (const bool errors : {false, true})
      remote_.add(node, {{.rank = rank,
                          .errors = errors,
                          .since = query_.since ? std::optional(seconds(*query_.since)) : std::nullopt},
                         text_of({.rank = rank, .local_rank = local_rank}, true)});
  }

  LogText text_of(const launch::LinePlace& place, bool among_others) const {
    const LogPrefix usual = {shows_many_ ? launch::kUsualPrefix : ""};
    const LogPrefix prefix = query_.prefix.value_or(usual);
    std::function<std::string()> front;
    if (!prefix.text.empty() || among_others) front = [prefix, place] { return expand(prefix, place); };
    std::function<bool(const std::string&)> wanted;
    if (query_.pattern)
      wanted = [pattern = *query_.pattern](const std::string& line) { return pattern.is_in(line); };
    return LogText(std::move(front), std::move(wanted));
  }

  void open(Log& log, const std::string& path) {
    const launch::LinePlace place = {.rank = first_rank() + log.log.rank, .local_rank = log.log.rank};
    followers_.push_back(std::make_unique<LogFollower>(loop_, out_, path,
                                                       text_of(place, logs_.size() > 1 || !remote_.empty())));
    log.follower = followers_.back().get();
    log.inode = log.follower->inode();  // of what was opened: a restart may have moved the file since
  }

  static void finish(const Log& log) { log.follower->finish(kNoHurry); }

  // What ranks wrote at the same time stands together. What is newer than the last entry follows, by ranks.
  void copy_by_time() {
    launch::visit_log_times(query_.folder, [this](const std::string& name, std::int64_t size) {
      for (const Log& log : logs_)
        if (log.log.name() == name) log.follower->copy_to(size, kNoHurry);
    });
  }

  void look() {
    for (const Log& log : logs_) log.follower->look();
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
    if (remote_.empty() || remote_.has_all() || out_.problem() != 0) return;
    for (const int rank : elsewhere_)
      log_line("fleetrun", fmt::format("there may be more in {}", place_of(rank, *places_)));
  }

  // A restart moves the log away and begins another one; there may have been several since the last look.
  void follow_next_attempts(Log& log) {
    const std::uint64_t inode = launch::inode_of(path_of(log));
    if (inode == 0 || inode == log.inode) return;
    for (const std::string& path : launch::attempts_since(query_.folder, log.log.name(), log.inode)) {
      finish(log);
      open(log, path);
    }
    finish(log);
    open(log, path_of(log));
  }

  const LogQuery& query_;
  const std::optional<Placed> places_;  // none: the run has one node
  EventLoop loop_;
  OutputStream out_;
  launch::RemoteLogs remote_;
  std::vector<int> elsewhere_;  // ranks of other nodes
  bool shows_many_ = false;     // ranks
  std::vector<Log> logs_;
  std::vector<std::unique_ptr<LogFollower>> followers_;  // also earlier ones: the loop may still call them
};

}  // namespace

int run_logs_command(const FoundFlags& found, const Environment& environment) {
  const LogQuery query =
      parse_log_query(found, find_log_dir(found, environment), std::chrono::system_clock::now());
  LogViewer(query).show();
  return 0;
}

}  // namespace fleetrun
