#include "launch/run/attempt_logs.h"

#include <utility>

#include <fmt/format.h>

namespace fleetrun::launch {
namespace {

// "0", "1", "1.err", as LogTimes knows them.
std::vector<std::string> log_names(const ConsolePlan& plan) {
  std::vector<std::string> names;
  for (std::size_t rank = 0; rank < plan.apart.size(); ++rank) {
    names.push_back(std::to_string(rank));
    if (plan.apart[rank]) names.push_back(names.back() + ".err");
  }
  return names;
}

// Ranks that nobody is shown are left in peace.
Clock::duration pause_between_looks(const ConsolePlan& plan) {
  if (plan.logs.empty()) return LogTimes::kPause;
  return FolderWatch::kUnseen;
}

}  // namespace

AttemptLogs::AttemptLogs(EventLoop& loop, const RunPlan& plan, const LogFolder& logs, Console& console)
    : loop_(loop),
      plan_(plan),
      logs_(logs),
      console_(console),
      times_(loop, logs, log_names(plan.cluster.console),
             [this](const std::string& log) { warn_of_loss(log); }),
      folder_(loop, logs.path(), pause_between_looks(plan.cluster.console), [this] { look(); }) {}

void AttemptLogs::begin_attempt(int attempt, const std::string& host) {
  times_.begin_attempt();
  if (!views_.empty()) folder_.follow(logs_.path());  // somebody may have removed the folder
  const bool keeps_bars =
      console_.out.is_terminal() && console_.err.is_terminal();  // the progress line shows them
  views_.push_back(std::make_unique<ConsoleView>(loop_, sources(attempt, host), keeps_bars));
}

void AttemptLogs::look() {
  if (views_.empty()) return;  // the run waits for other nodes
  times_.look();
  views_.back()->look();
}

// Once in a run: usually all ranks run the same program.
void AttemptLogs::warn_of_loss(const std::string& log) {
  if (std::exchange(warned_, true)) return;
  console_.warn(fmt::format(
      "{} was emptied, and what the rank had written is lost; \"> /dev/stderr\" and \"> /dev/stdout\" in a rank do "
      "that, \">&2\" and \">>\" do not",
      logs_.file("workerlog." + log)));
}

std::string AttemptLogs::bar() const { return views_.empty() ? "" : views_.back()->bar(); }

bool AttemptLogs::finish(const Patience& patience) {
  times_.finish();
  return views_.back()->finish(patience);
}

std::vector<ConsoleSource> AttemptLogs::sources(int attempt, const std::string& host) const {
  const LaunchOptions& options = plan_.options;
  const ConsolePlan& shown = plan_.cluster.console;
  const LogPrefix usual = {shown.shows_many() ? kUsualPrefix : ""};
  const LogPrefix plain = options.log_prefix.value.value_or(usual);
  const bool chosen = options.log_prefix.origin != Origin::fallback;
  const LogPrefix tagged = chosen ? plain : options.tee_prefix.value.prefix;
  const bool has_answer = !options.eval.value.empty();  // which alone goes to stdout
  std::vector<ConsoleSource> sources;
  for (const ShownLog& log : shown.logs) {
    const bool errors = log.stream == LogStream::err;
    sources.push_back(
        {.log = errors ? logs_.find_error_log(log.local_rank) : logs_.find_worker_log(log.local_rank),
         .prefix = log.tagged ? tagged : plain,
         .place = {.rank = plan_.cluster.first_rank() + log.local_rank,
                   .local_rank = log.local_rank,
                   .host = host,
                   .attempt = attempt,
                   .role = options.role.value},
         .stream = errors || has_answer ? &console_.err : &console_.out,
         .has_colours = errors || has_answer ? console_.err_has_colours : console_.out_has_colours});
  }
  return sources;
}

}  // namespace fleetrun::launch
