#include "launch/render/render.h"

#include <fmt/format.h>

#include "base/error/error.h"
#include "job/parse_job.h"
#include "launch/cli/command_line.h"
#include "launch/plan/program.h"
#include "launch/render/target.h"

namespace fleetrun::launch {
namespace {

// Of the command of the run; flags that ask a question leave no program.
JobFacts read_job_facts(const LaunchOptions& options) {
  if (options.program.empty() || kind_of(requested_program(options)) != ProgramKind::job) return std::nullopt;
  try {
    return job::parse_job_file(options.program, options.arguments).spec;
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::missing) throw;
    throw Error(error.kind(), error.message(),
                "fleetrun render reads the job file; call it where the file is");
  }
}

}  // namespace

std::string render(const std::string& target_name, const RenderFlags& own,
                   const std::vector<std::string>& words) {
  const Target& target = find_target(target_name);
  const LaunchOptions options = parse_launch_options(words, Environment()).options;
  return target.write(plan_batch_run(target, own, words, read_job_facts(options)));
}

}  // namespace fleetrun::launch
