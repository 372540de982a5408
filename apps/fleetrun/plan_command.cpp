#include <cstdlib>

#include <fmt/format.h>

#include "base/error/error.h"
#include "base/run/plan_request.h"
#include "become.h"
#include "commands.h"
#include "job/parse_job.h"
#include "launch/cli/bench_table.h"
#include "launch/cli/flags/flag_values.h"
#include "launch/plan/program.h"

namespace fleetrun {
namespace {

constexpr std::size_t kMostMemory = std::size_t{1} << 50;

double parse_positive(const std::string& source, const std::string& text) {
  char* end = nullptr;
  const double number = std::strtod(text.c_str(), &end);
  if (text.empty() || *end != '\0' || !(number > 0 && number < 1e12))
    throw Error(ErrorKind::usage, fmt::format("{} is \"{}\", wanted a number above 0", source, text));
  return number;
}

PlanRequest parse_plan_flags(const FoundFlags& found) {
  PlanRequest request;
  if (const auto text = found.value("--hosts")) request.hosts = launch::parse_count("--hosts", *text);
  if (const auto text = found.value("--gpus")) request.gpus = launch::parse_count("--gpus", *text);
  if (const auto text = found.value("--memory"))
    request.memory_bytes = static_cast<double>(launch::parse_size("--memory", *text, kMostMemory));
  const auto read = [&](const char* flag, double PlanRequest::*member) {
    if (const auto text = found.value(flag)) request.*member = parse_positive(flag, *text);
  };
  read("--tflops", &PlanRequest::tflops);
  read("--memory_bandwidth", &PlanRequest::memory_gb_s);
  read("--link", &PlanRequest::link_gb_s);
  read("--network", &PlanRequest::network_gb_s);
  read("--latency", &PlanRequest::latency_us);
  read("--step_ms", &PlanRequest::step_ms);
  return request;
}

}  // namespace

int run_plan_command(const FoundFlags& found, const Environment&) {
  if (found.rest.empty())
    throw Error(ErrorKind::usage, "found no job file, wanted one", "fleetrun plan --help");
  const PlanRequest request = parse_plan_flags(found);
  job::parse_job_file(found.rest.front(),
                      {found.rest.begin() + 1, found.rest.end()});  // reports its mistakes
  launch::Program program = launch::find_worker({"--plan", write_plan_request(request)});
  program.argv.insert(program.argv.end(), found.rest.begin(), found.rest.end());
  become(program);
}

}  // namespace fleetrun
