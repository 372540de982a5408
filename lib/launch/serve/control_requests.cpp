#include "launch/serve/control_requests.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <limits>
#include <optional>
#include <sstream>
#include <vector>

#include <fmt/format.h>

#include "base/error/error.h"
#include "base/json/json_reader.h"
#include "base/json/redact_variables.h"
#include "launch/cli/flags/rank_set.h"
#include "launch/console/progress_line.h"
#include "launch/process/proc_files.h"
#include "launch/serve/figures_json.h"
#include "launch/serve/log_pieces.h"
#include "launch/serve/prometheus_exporter.h"

namespace fleetrun::launch {
namespace {

using Kind = JsonValue::Kind;

double resident_mib(pid_t pid) {
  std::istringstream text(read_kernel_file(process_path(pid, "statm")));
  double total = 0, resident = 0;
  text >> total >> resident;
  return resident * static_cast<double>(::sysconf(_SC_PAGESIZE)) / (1 << 20);
}

// Of the process and all below it: a rank may be a shell script, and its program the child.
void add_load(pid_t pid, JsonValue& json) {
  std::chrono::milliseconds cpu_time{0};
  double memory = 0;  // of the largest process: forked ones share much of theirs
  for (const pid_t one : list_process_tree(pid)) {
    if (const auto stat = read_process_stat(one)) cpu_time += stat->cpu_time;
    memory = std::max(memory, resident_mib(one));
  }
  json.add("cpu_seconds", in_seconds(cpu_time));
  json.add("memory_mib", memory);
}

// Of stdout and, if the rank has one, of stderr: the bytes of both, and the time since the last write to one of them.
void add_logs(const std::vector<LogFile>& logs, const Moment& started, JsonValue& json) {
  std::int64_t bytes = 0;
  std::optional<double> ago;
  for (const LogFile& log : logs) {
    struct stat facts {};
    if (::fstatat(log.folder, log.name.c_str(), &facts, 0) != 0) continue;
    bytes += facts.st_size;
    ago =
        std::min(ago.value_or(std::numeric_limits<double>::infinity()), seconds_since_write(facts, started));
  }
  if (!ago) return;
  json.add("log_bytes", bytes);
  json.add("log_seconds_ago", *ago);
}

JsonValue describe_rank(const RunControl& run, std::size_t rank) {
  const WorkerRecord& record = run.state.workers.at(rank);
  const RankVerdict& verdict = run.state.verdict.ranks.at(rank);
  const auto& status = verdict.status;
  JsonValue json = JsonValue::object({{"rank", run.state.verdict.number_of(static_cast<int>(rank))}});
  if (record.pid <= 0) {
    json.add("state", "not started");
    return json;
  }
  json.add("pid", record.pid);
  const auto stat = status ? std::nullopt : read_process_stat(record.pid);
  json.add("state", verdict.leaves_processes ? "program is ending"
                    : status                 ? status->describe()
                    : stat                   ? std::string(1, stat->state)
                                             : "gone");
  json.add("seconds", seconds_between(record.started, status ? record.ended : Moment::now()));
  if (stat) add_load(record.pid, json);
  if (rank < run.state.pages.size()) {
    const Progress progress = read_progress(*run.state.pages[rank]);
    json.add("epoch", progress.epoch);
    json.add("step", progress.step);
    if (JsonValue gpu = gpu_json(run.state.pages[rank]->gpu.read()); !gpu.is(Kind::null))
      json.add("gpu", std::move(gpu));
  }
  const int number = static_cast<int>(rank);
  add_logs({run.logs.find_worker_log(number), run.logs.find_error_log(number)}, record.started, json);
  return json;
}

JsonValue describe_run(const RunControl& run) {
  JsonValue ranks = JsonValue::list({});
  for (std::size_t rank = 0; rank < run.state.workers.size(); ++rank)
    ranks.items.push_back(describe_rank(run, rank));
  return run_json(run.report, run.state.verdict.attempt, ranks);
}

JsonValue stop_run(const RunControl& run, const JsonValue& request) {
  run.events.push(SignalReceived{SIGTERM});
  const JsonValue* const now = request.find("now", Kind::boolean);
  if (now != nullptr && now->boolean) run.events.push(SignalReceived{SIGINT});  // as Ctrl-C while it stops
  return JsonValue::object({{"run_id", run.report.run_id}});
}

JsonValue send_signal_to(const RunControl& run, const JsonValue& request, const std::string& sender) {
  const JsonValue* const signal = request.find("signal", Kind::integer);
  const JsonValue* const chosen = request.find("ranks", Kind::text);
  const auto ranks = static_cast<int>(run.state.workers.size());
  const auto& verdict = run.state.verdict;
  const int least = verdict.number_of(0), most = verdict.number_of(ranks - 1);
  const RankSet wanted = parse_ranks("ranks", chosen == nullptr ? "all" : chosen->text);
  if (const auto other = rank_beyond(wanted, least, most))
    return refusal(fmt::format("{} has the ranks {} to {}, not {}",
                               verdict.span.world == ranks ? "the run" : "this node", least, most, *other));
  const int number = signal == nullptr ? 0 : static_cast<int>(signal->integer);
  std::vector<int> sent, spared;
  for (int rank = 0; rank < ranks; ++rank) {
    if (!wanted.contains(verdict.number_of(rank))) continue;
    if (run.group.would_end(rank, number))
      spared.push_back(verdict.number_of(rank));
    else if (run.group.send(rank, number, sender))
      sent.push_back(verdict.number_of(rank));
  }
  return JsonValue::object({{"ranks", sent}, {"spared", spared}});
}

JsonValue answer_to(const RunControl& run, const std::string& text, const std::string& sender) {
  const JsonDocument request = read_json(text);
  if (!request.problems.empty()) return refusal(request.problems.front().message);
  const JsonValue* const what = request.root.find("do", Kind::text);
  if (what != nullptr && what->text == "ps") return describe_run(run);
  if (what != nullptr && what->text == "stop") return stop_run(run, request.root);
  if (what != nullptr && what->text == "signal") return send_signal_to(run, request.root, sender);
  if (what != nullptr && what->text == "log")
    return read_log_pieces({run.logs, run.attempt, run.state.verdict}, request.root);
  if (what != nullptr && what->text == "figures")
    return figures_json(measure_run({run.state, run.report, {}}).ranks);
  return refusal("found " + to_json(request.root) + ", wanted {\"do\": \"ps\", \"stop\" or \"signal\"}");
}

}  // namespace

JsonValue run_json(const ExitReport& report, int attempt, const JsonValue& ranks) {
  return JsonValue::object({{"run_id", report.run_id},
                            {"job_id", report.job_id},
                            {"pid", ::getppid()},  // the front process: the one that people signal
                            {"attempt", attempt},
                            {"seconds", seconds_since(report.started)},
                            {"command", redact_variables(report.command)},
                            {"ranks", ranks},
                            {"stragglers", stragglers_json(report)}});
}

JsonValue refusal(const std::string& why) { return JsonValue::object({{"error", why}}); }

std::optional<int> rank_beyond(const RankSet& wanted, int least, int most) {
  for (const auto& [first, last] : wanted.ranges)
    if (first < least || last > most) return first < least ? first : std::max(first, most + 1);
  return std::nullopt;
}

std::string RunControl::answer(const std::string& request, const std::string& sender) const {
  try {
    return to_json(answer_to(*this, request, sender));
  } catch (const Error& error) {
    return to_json(refusal(error.message()));
  }
}

}  // namespace fleetrun::launch
