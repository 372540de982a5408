#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <memory>

#include <fmt/format.h>

#include "base/error/error.h"
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
using launch::RankLog;

constexpr auto kLookPause = std::chrono::seconds(1);  // between looks whether the run is over or begins anew
constexpr auto kReaderTime = std::chrono::hours(1000);  // a reader may read as slowly as it likes

// Shows logs, and while the run goes on what is added to them.
class LogViewer {
 public:
  explicit LogViewer(const LogQuery& query) : query_(query), out_(loop_, STDOUT_FILENO) {
    const std::string newest = launch::newest_logs(query.folder);
    for (const RankLog& log : launch::find_logs(newest))
      if (!query.ranks || query.ranks->contains(log.rank)) logs_.push_back({.log = log});
    if (logs_.empty())
      throw Error(ErrorKind::missing,
                  fmt::format("{}/ has no log of the ranks of --rank={}", query.folder, query.ranks->text));
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
      loop_.run();
    }
    for (const Log& log : logs_) finish(log);
    if (out_.problem() != 0 && out_.problem() != EPIPE)  // a reader may have enough
      throw Error(ErrorKind::io, "writing to stdout: " + describe_errno(out_.problem()));
  }

 private:
  struct Log {
    RankLog log;
    std::uint64_t inode = 0;
    LogFollower* follower = nullptr;
  };

  std::string path_of(const Log& log) const {
    return fmt::format("{}/workerlog.{}", query_.folder, log.log.name());
  }

  LogText text_of(const Log& log) const {
    const LogPrefix usual = {logs_.front().log.rank != logs_.back().log.rank ? "[{rank}] " : ""};
    const LogPrefix prefix = query_.prefix.value_or(usual);
    std::function<std::string()> front;
    const launch::LinePlace place = {.rank = log.log.rank, .local_rank = log.log.rank};
    if (!prefix.text.empty() || logs_.size() > 1) front = [prefix, place] { return expand(prefix, place); };
    std::function<bool(const std::string&)> wanted;
    if (query_.pattern)
      wanted = [pattern = *query_.pattern](const std::string& line) { return pattern.is_in(line); };
    return LogText(std::move(front), std::move(wanted));
  }

  void open(Log& log, const std::string& path) {
    followers_.push_back(std::make_unique<LogFollower>(loop_, out_, path, text_of(log)));
    log.follower = followers_.back().get();
    log.inode = log.follower->inode();  // of what was opened: a restart may have moved the file since
  }

  static void finish(const Log& log) {
    log.follower->finish({kReaderTime, [] { return false; }});
  }

  void look() {
    for (const Log& log : logs_) log.follower->look();
  }

  void look_again_later() {
    loop_.call_at(Clock::now() + kLookPause, [this] {
      const bool over =
          !launch::is_in_use(query_.folder) || out_.problem() != 0;  // before the look at the last attempt
      for (Log& log : logs_) follow_next_attempts(log);
      if (over) return loop_.stop();
      look();
      look_again_later();
    });
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
  EventLoop loop_;
  OutputStream out_;
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
