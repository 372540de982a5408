#include "launch/serve/prometheus_exporter.h"

#include <algorithm>
#include <chrono>
#include <csignal>
#include <utility>

#include <fmt/format.h>

#include "base/error/error.h"
#include "base/run/version.h"
#include "base/system/file.h"
#include "base/system/marked_file.h"
#include "launch/process/proc_files.h"

namespace fleetrun::launch {
namespace {

constexpr auto kWriteEvery = std::chrono::seconds(5);  // a third of what collectors wait between two looks

double seconds_since_1970(std::chrono::system_clock::time_point time) {
  return std::chrono::duration<double>(time.time_since_epoch()).count();
}

void read_page(const ProgressPage& page, RankMetrics& rank) {
  rank.progress = read_progress(page);
  for (std::size_t use = 0; use < kTimeUses; ++use)
    rank.spent_ns[use] = page.spent_ns[use].load(std::memory_order_relaxed);
  rank.first_step = page.first_step.load(std::memory_order_relaxed);
  rank.gpu = page.gpu.read();
  rank.communication_share = page.communication_share.load(std::memory_order_relaxed);
  const std::int64_t beat = page.heartbeat_ns.load(std::memory_order_relaxed);
  const std::int64_t now = Clock::now().time_since_epoch() / std::chrono::nanoseconds(1);
  rank.heartbeat_age = beat == 0 ? 0 : static_cast<double>(std::max<std::int64_t>(0, now - beat)) / 1e9;
}

}  // namespace

RunMetrics measure_run(const MetricsSource& source) {
  const auto& [state, report, others, owns_file, restarts] = source;
  RunMetrics run = {.run_id = report.run_id,
                    .job_id = report.job_id,
                    .host = report.host,
                    .version = own_version(),
                    .start_time = seconds_since_1970(report.started.wall),
                    .restarts = restarts ? restarts() : state.verdict.attempt,
                    .exit_code = std::nullopt,
                    .first_rank = state.verdict.span.first,
                    .ranks = {}};
  for (const StragglerRecord& one : report.stragglers)
    if (one.attempt == state.verdict.attempt)
      run.stragglers.push_back({one.found.rank, one.host,
                                std::string(kTimeUseNames[static_cast<std::size_t>(one.found.phase)]),
                                one.found.factor()});
  for (std::size_t i = 0; i < state.workers.size(); ++i) {
    RankMetrics rank;
    const auto& verdicts = state.verdict.ranks;
    if (i < verdicts.size() && verdicts[i].status) rank.exit_code = verdicts[i].status->exit_code();
    rank.up = state.workers[i].pid > 0 && !rank.exit_code;
    if (rank.up) rank.peak_kib = read_peak_kib(state.workers[i].pid);
    if (i < state.pages.size()) read_page(*state.pages[i], rank);
    run.ranks.push_back(rank);
  }
  if (!others) return run;
  for (const RankMetrics& rank : others()) run.ranks.push_back(rank);
  return run;
}

HttpAnswer metrics_answer(const std::string& path, const std::function<std::string()>& text) {
  if (path != "/metrics") return {.status = "404 Not Found", .body = "only /metrics\n"};
  return {.type = "text/plain; version=0.0.4; charset=utf-8", .body = text()};
}

PrometheusExporter::PrometheusExporter(EventLoop& loop, const LaunchOptions& options,
                                       const MetricsSource& source,
                                       std::function<void(std::string_view line)> say)
    : rewrite_(loop), source_(source), say_(std::move(say)), file_(options.metrics_file.value) {
  if (const auto& wanted = options.metrics_port.value) {
    server_ = std::make_unique<HttpServer>(loop, *wanted, "--metrics_port",
                                           [this](const std::string& path) { return answer(path); });
    say_(fmt::format("metrics are at http://{}/metrics", server_->endpoint().describe()));
  }
  if (file_.empty()) return;
  require_ours(file_, Mark{.text = kMetricsStart}, "choose another file with --metrics_file");
  write_again_later();
}

HttpAnswer PrometheusExporter::answer(const std::string& path) const {
  return metrics_answer(path, [this] { return prometheus_text(measure_run(source_)); });
}

void PrometheusExporter::finish(int exit_code) {
  if (file_.empty()) return;
  rewrite_.cancel();
  RunMetrics run = measure_run(source_);
  run.exit_code = exit_code;
  write(run);
}

void PrometheusExporter::write_again_later() {
  write(measure_run(source_));
  rewrite_.call_at(Clock::now() + kWriteEvery, [this] { write_again_later(); });
}

// A run does not fail because its metrics cannot be written.
void PrometheusExporter::write(const RunMetrics& run) {
  if (source_.owns_file && !source_.owns_file()) return;
  try {
    require_ours(file_, Mark{.text = kMetricsStart}, "");
    replace_file(file_, prometheus_text(run), Readers::all);  // node_exporter is another user
    failed_ = false;
  } catch (const Error& error) {
    if (!std::exchange(failed_, true)) say_("--metrics_file: " + error.message());
  }
}

}  // namespace fleetrun::launch
