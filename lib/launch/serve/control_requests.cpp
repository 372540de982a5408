#include "launch/serve/control_requests.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <sstream>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "launch/cli/rank_set.h"
#include "launch/console/progress_line.h"
#include "launch/process/proc_files.h"

namespace fleetrun::launch {
namespace {

using Json = nlohmann::ordered_json;

constexpr double kTicksPerSecond = 100;  // of /proc/PID/stat on Linux

double resident_mib(pid_t pid) {
  std::istringstream text(read_kernel_file(process_path(pid, "statm")));
  double total = 0, resident = 0;
  text >> total >> resident;
  return resident * static_cast<double>(::sysconf(_SC_PAGESIZE)) / (1 << 20);
}

void add_log(const LogFile& log, const Moment& started, Json& json) {
  struct stat facts {};
  if (::fstatat(log.folder, log.name.c_str(), &facts, 0) != 0) return;
  json["log_bytes"] = facts.st_size;
  json["log_seconds_ago"] = seconds_since_write(facts, started);
}

Json describe_rank(const RunControl& run, std::size_t rank) {
  const WorkerRecord& record = run.state.workers.at(rank);
  const auto& status = run.state.verdict.ranks.at(rank).status;
  Json json = {{"rank", rank}};
  if (record.pid <= 0) {
    json["state"] = "not started";
    return json;
  }
  json["pid"] = record.pid;
  const auto stat = status ? std::nullopt : read_process_stat(record.pid);
  json["state"] = status ? status->describe() : stat ? std::string(1, stat->state) : "gone";
  json["seconds"] = seconds_since(record.started);
  if (stat) {
    json["cpu_seconds"] = static_cast<double>(stat->cpu_ticks) / kTicksPerSecond;
    json["memory_mib"] = resident_mib(record.pid);
  }
  if (rank < run.state.pages.size()) {
    const Progress progress = read_progress(*run.state.pages[rank]);
    json["epoch"] = progress.epoch;
    json["step"] = progress.step;
  }
  add_log(run.logs.find_worker_log(static_cast<int>(rank)), record.started, json);
  return json;
}

Json describe_run(const RunControl& run) {
  Json json = {{"run_id", run.report.run_id},
               {"job_id", run.report.job_id},
               {"pid", ::getppid()},  // the front process: the one that people signal
               {"attempt", run.state.verdict.attempt},
               {"seconds", seconds_since(run.report.started)},
               {"command", run.report.command},
               {"ranks", Json::array()}};
  for (std::size_t rank = 0; rank < run.state.workers.size(); ++rank)
    json["ranks"].push_back(describe_rank(run, rank));
  return json;
}

Json stop_run(const RunControl& run, const Json& request) {
  run.events.push(SignalReceived{SIGTERM});
  if (request.value("now", false)) run.events.push(SignalReceived{SIGINT});  // as Ctrl-C while it stops
  return {{"run_id", run.report.run_id}};
}

Json send_signal_to(const RunControl& run, const Json& request, const std::string& sender) {
  const int signal = request.value("signal", 0);
  const auto ranks = static_cast<int>(run.state.workers.size());
  const RankSet wanted = parse_ranks("ranks", request.value("ranks", "all"));
  for (const auto& [first, last] : wanted.ranges)
    if (last >= ranks)
      return {
          {"error", fmt::format("the run has the ranks 0 to {}, not {}", ranks - 1, std::max(first, ranks))}};
  Json sent = Json::array();
  for (int rank = 0; rank < ranks; ++rank)
    if (wanted.contains(rank) && run.group.send(rank, signal, sender)) sent.push_back(rank);
  return {{"ranks", sent}};
}

std::string refusal(const std::string& why) {
  return Json{{"error", why}}.dump(-1, ' ', false, Json::error_handler_t::replace);
}

Json answer_to(const RunControl& run, const Json& request, const std::string& sender) {
  const std::string what = request.value("do", "");
  if (what == "ps") return describe_run(run);
  if (what == "stop") return stop_run(run, request);
  if (what == "signal") return send_signal_to(run, request, sender);
  return {{"error", "found " + request.dump() + ", wanted {\"do\": \"ps\", \"stop\" or \"signal\"}"}};
}

}  // namespace

std::string RunControl::answer(const std::string& request, const std::string& sender) const {
  try {
    return answer_to(*this, Json::parse(request), sender)
        .dump(-1, ' ', false, Json::error_handler_t::replace);
  } catch (const Json::exception& error) {
    return refusal(error.what());
  } catch (const Error& error) {
    return refusal(error.message());
  }
}

}  // namespace fleetrun::launch
