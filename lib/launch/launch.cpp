#include "launch/launch.h"

#include <optional>

#include <fmt/format.h>

#include "base/error.h"
#include "job/check_inputs.h"
#include "job/parse_job.h"
#include "launch/cluster.h"
#include "launch/guardian.h"
#include "launch/host_facts.h"
#include "launch/program.h"
#include "launch/run_node.h"

namespace fleetrun::launch {
namespace {

// All that can be wrong with a job is told before a process or a file is made.
std::optional<job::ParsedJob> read_job(const LaunchOptions& options) {
  if (kind_of_program(options.program) != ProgramKind::job) {
    if (!options.dump_program.value.empty())
      throw Error(ErrorKind::usage,
                  fmt::format("--dump_program is for job files, and {} is none", options.program));
    return std::nullopt;
  }
  job::ParsedJob job = job::parse_job_file(options.program, options.arguments);
  job::check_inputs(job.spec);
  return job;
}

ProgramNeeds needs_of(const std::optional<job::ParsedJob>& job) {
  if (!job) return {};
  return {.embedded_runtime = true, .device = job->spec.device};
}

}  // namespace

int launch(const LaunchOptions& options, const Environment& environment) {
  const std::optional<job::ParsedJob> job = read_job(options);
  const Program program = find_program(options.program, options.arguments, environment);
  const HostFacts host = probe_host();
  const ClusterSpec cluster = resolve_cluster(options, host, needs_of(job), environment);
  return run_guarded([&](int front_fd) {
    return run_node({options, environment, program, job, cluster}, front_fd);
  });
}

}  // namespace fleetrun::launch
