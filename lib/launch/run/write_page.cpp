#include "launch/run/write_page.h"

#include <algorithm>
#include <chrono>
#include <string_view>
#include <utility>
#include <vector>

#include "base/error/error.h"
#include "base/json/redact_variables.h"
#include "base/text/redact.h"
#include "launch/cli/flags/shell_words.h"
#include "launch/console/progress_line.h"
#include "launch/logs/log_names.h"
#include "launch/page/run_page.h"
#include "launch/report/utc_time.h"
#include "launch/run/fill_report.h"

namespace fleetrun::launch {
namespace {

constexpr auto kMeasureEvery = std::chrono::seconds(1);
constexpr auto kShortestPause = std::chrono::seconds(2);  // between two pages
constexpr auto kLongestPause = std::chrono::seconds(30);  // of a run that has gone on for long
constexpr int kShareOfTime = 100;                         // a page may take a hundredth of the time
constexpr int kShareOfRun = 100;                          // a pause is a hundredth of the run so far

// To parse 16 MiB takes a quarter of a second. Other nodes take this one for lost if it is silent for seconds.
constexpr std::size_t kMostLiveHistory = std::size_t{16} << 20;

void add_job(const RunPlan& plan, PageFacts& facts) {
  if (!plan.embedded) return;
  constexpr std::string_view kVariable = "env.";
  for (const job::KeyValue& value : plan.embedded->values) {
    const bool variable = value.key.starts_with(kVariable);
    facts.job.push_back({value.key,
                         variable ? redact(value.key.substr(kVariable.size()), value.value) : value.value,
                         value.origin, value.is_set});
  }
}

void add_figures(const RankFigures& figures, PageFacts& facts) {
  for (PageRank& rank : facts.ranks) {
    if (const auto peak = figures.peak_kib.find(rank.rank); peak != figures.peak_kib.end())
      rank.peak_kib = peak->second;
    const int place = rank.rank - figures.metrics.first_rank;
    if (place < 0 || place >= std::ssize(figures.metrics.ranks)) continue;
    const RankMetrics& measured = figures.metrics.ranks[static_cast<std::size_t>(place)];
    rank.spent_ns = measured.spent_ns;
    if (measured.progress && measured.progress->step > measured.first_step)
      rank.steps = measured.progress->step - measured.first_step;
  }
}

PageFacts end_facts(const RunPlan& plan, const ExitReport& report) {
  PageFacts facts =
      read_report_facts(report_value(report), report.verdict.span.first, std::ssize(report.verdict.ranks));
  facts.end->text = describe(report);
  facts.command = quote_words(redact_variables(report.command));
  add_job(plan, facts);
  return facts;
}

std::string state_of(const RankMetrics& rank) {
  if (rank.exit_code)
    return *rank.exit_code == 0 ? "finished" : "ended with code " + std::to_string(*rank.exit_code);
  return rank.up ? "running" : "not running";
}

PageFacts live_facts(const RunPlan& plan, const ExitReport& report, const RankFigures& figures,
                     const LogFolder& logs) {
  const RunMetrics& metrics = figures.metrics;
  PageFacts facts = {.name = report.job_id, .run_id = report.run_id, .host = report.host};
  facts.command = quote_words(redact_variables(report.command));
  facts.version = metrics.version;
  facts.started = utc_time(report.started.wall);
  facts.seconds = seconds_between(report.started, Moment::now());
  std::vector<Progress> progress;
  for (std::size_t i = 0; i < metrics.ranks.size(); ++i) {
    const RankMetrics& rank = metrics.ranks[i];
    facts.ranks.push_back({.rank = metrics.first_rank + static_cast<int>(i), .state = state_of(rank)});
    if (std::cmp_less(i, plan.cluster.local_size()))
      facts.ranks.back().log = "workerlog." + std::to_string(i);
    if (rank.progress) progress.push_back(*rank.progress);
  }
  if (!progress.empty()) facts.progress = progress_text(progress);
  for (const AttemptRecord& attempt : report.attempts)
    facts.attempts.push_back({attempt.number, attempt.message, "attempt-" + std::to_string(attempt.number)});
  for (const StragglerRecord& slow : report.stragglers) facts.notes.push_back(slow.describe());
  add_job(plan, facts);
  add_figures(figures, facts);
  facts.files = logs.shown_names();
  facts.history = parse_history(logs.read_history(kMostLiveHistory));
  if (const auto file = logs.look(kHistoryName); file && std::cmp_greater(file->size, kMostLiveHistory))
    facts.notes.emplace_back("While the run goes on, the charts show the last 16 MiB of history.csv.");
  return facts;
}

}  // namespace

std::string end_page(const RunPlan& plan, const ExitReport& report) {
  return run_page(end_facts(plan, report));
}

void write_end_page(const RunPlan& plan, const LogFolder& logs, const ExitReport& report,
                    const RankFigures& figures) {
  PageFacts facts = end_facts(plan, report);
  add_figures(figures, facts);
  facts.files = logs.shown_names();
  facts.history = parse_history(logs.read_history(kMostHistoryBytes));
  logs.write(kPageName, run_page(facts));
}

LivePage::LivePage(EventLoop& loop, Sources sources)
    : sources_(std::move(sources)), look_(loop), redraw_(loop) {
  measure_again_later();
  draw_later({});
}

void LivePage::finish() {
  look_.cancel();
  redraw_.cancel();
  measure();
  write_end_page(sources_.plan, sources_.logs, sources_.metrics.report, figures_);
}

// A process that has ended no longer says how much memory it held.
void LivePage::measure() {
  figures_.metrics = measure_run(sources_.metrics);
  int number = figures_.metrics.first_rank;
  for (const RankMetrics& rank : figures_.metrics.ranks) {
    std::uint64_t& peak = figures_.peak_kib[number++];
    peak = std::max(peak, rank.peak_kib);
  }
}

void LivePage::measure_again_later() {
  look_.call_at(Clock::now() + kMeasureEvery, [this] {
    measure();
    measure_again_later();
  });
}

void LivePage::draw_later(Clock::duration took) {
  const Clock::duration so_far = Clock::now() - sources_.metrics.report.started.steady;
  const Clock::duration pause = std::max(
      kShareOfTime * took, std::clamp<Clock::duration>(so_far / kShareOfRun, kShortestPause, kLongestPause));
  redraw_.call_at(Clock::now() + pause, [this] { draw(); });
}

void LivePage::draw() {
  const TimePoint start = Clock::now();
  measure();
  try {
    const auto& [plan, logs, metrics] = sources_;
    logs.write(kPageName, run_page(live_facts(plan, metrics.report, figures_, logs)));
  } catch (const Error&) {
    return;  // logs need what is left of the disk; the end of the run tries once more
  }
  draw_later(Clock::now() - start);
}

}  // namespace fleetrun::launch
