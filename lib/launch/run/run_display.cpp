#include "launch/run/run_display.h"

#include <csignal>

#include <fmt/format.h>

#include "launch/run/announcements.h"
#include "launch/run/fill_report.h"

namespace fleetrun::launch {

RunDisplay::RunDisplay(EventLoop& loop, const Sources& sources)
    : sources_(sources),
      progress_(
          loop, [this] { return progress_of_all(); }, [this] { return attempt_logs_.bar(); },
          sources.plan.environment),
      attempt_logs_(loop, sources.plan, sources.logs, sources.console),
      remote_console_(loop, sources.plan, sources.nodes, sources.console),
      waits_(loop, sources.plan.options.grace.value, sources.state.verdict,
             [this](std::string_view line) { sources_.console.say(line); }) {
  sources_.console.out.before_write([this] { progress_.clear(); });
  sources_.console.err.before_write([this] { progress_.clear(); });
}

std::vector<Progress> RunDisplay::progress_of_all() const {
  std::vector<Progress> ranks;
  for (const ProgressPagePtr& page : sources_.state.pages) ranks.push_back(read_progress(*page));
  if (ranks.empty()) return ranks;
  for (const RankMetrics& rank : sources_.others.ranks()) ranks.push_back(rank.progress.value_or(Progress()));
  return ranks;
}

void RunDisplay::begin_run(const std::vector<WorkerSpec>& workers) {
  const auto& [plan, logs, state, console, nodes, others] = sources_;
  const auto announce_previous = [&console = console, line = describe_previous(plan.cluster, logs)] {
    if (!line.empty()) console.say(line);
  };
  if (plan.quiet) return announce_previous();
  for (const std::string& warning : plan.warnings) console.warn(warning);
  if (!logs.warning().empty()) console.warn(logs.warning());
  announce_previous();
  for (const std::string& note : plan.options.notes) console.say(note);
  announce_start(plan.options, plan.cluster, workers, console);
  if (plan.embedded)
    for (const std::string& note : plan.embedded->notes) console.say(note);
  if (const std::string line = warn_of_stop(plan.stop); !line.empty() && plan.cluster.node_rank == 0)
    console.say(line);
}

void RunDisplay::begin_attempt(int attempt, const std::string& host) {
  waits_.begin_attempt();
  attempt_logs_.begin_attempt(attempt, host);
  remote_console_.begin_attempt(attempt);
}

void RunDisplay::show(const Event& event) {
  announce_event(event, sources_.state.verdict, sources_.plan.program.argv, sources_.console);
  waits_.look();
  const auto* signal = std::get_if<SignalReceived>(&event);
  if (signal != nullptr && signal->signal == SIGTSTP) sources_.console.hold();
  if (signal != nullptr && signal->signal == SIGCONT) {
    sources_.console.release();
    progress_.begin_anew();
  }
}

bool RunDisplay::show_end(const ExitReport& report, const Patience& patience) {
  const bool all_shown = attempt_logs_.finish(patience);
  if (all_shown) remote_console_.finish(patience);
  if (is_archived(report.verdict.attempt, report)) {  // what its ranks did was shown before the pause
    sources_.console.say(describe_cause(report.verdict, report.command));
    sources_.console.show(report.going_on);
  } else if (stop_signal(report)) {
    sources_.console.show(describe(report));
  } else {
    sources_.console.show_problem(describe(report));
  }
  return all_shown;
}

void RunDisplay::end_run(const ExitReport& report, const Patience& patience) {
  Console& console = sources_.console;
  if (!show_end(report, patience))
    console.say(fmt::format("nobody reads our output in time; the rest of it is in {}", report.logs.front()));
  if (report.verdict.cause == Cause::finished && report.verdict.exit_code == 0)
    console.log(LogLevel::info, "Local processes completed.");
  console.err.drain(patience);
}

}  // namespace fleetrun::launch
