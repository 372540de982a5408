// A batch file for LSF: options of bsub, and blaunch, as in the IBM Spectrum LSF 10.1 command reference.
#include <fmt/format.h>

#include "base/text/plural.h"
#include "launch/cli/flags/shell_words.h"
#include "launch/render/batch_text.h"
#include "launch/render/shell_parts.h"
#include "launch/render/writers.h"

namespace fleetrun::launch {
namespace {

constexpr std::string_view kLsfFile = R"(#!/bin/bash
<<header>>
# shellcheck disable=SC2016  # what is in single quotes is not for this shell

#BSUB -J <<name>>
# One slot per host: one fleetrun starts the ranks of its host.
#BSUB -n <<nodes>>
#BSUB -R "span[ptile=1]"
<<gpus>>
<<cores>>
<<queue>>
<<time>>
#BSUB -o <<name>>-%J.out
# LSF starts the job again when its host fails, and after exit code 75: fleetrun lost a node or a connection.
#BSUB -r
#BSUB -Q "75"

set -u
<<folder>>

fleetrun=<<fleetrun>>
<<arguments>>
# Each node writes its own logs. The elements of a job array have an index, other jobs have 0.
logs=<<log_dir>>/$LSB_JOBID
[ "${LSB_JOBINDEX:-0}" = 0 ] || logs+="-$LSB_JOBINDEX"
<<hosts>>

<<start>>
<<wait>>
)";

constexpr std::string_view kHowToBsub =
    "Submit it:       bsub < {}.lsf\n"
    "Stop:            bkill JOBID\n"
    "When a job is stopped, LSF waits JOB_TERMINATE_INTERVAL (10 s by default) between SIGINT, SIGTERM and SIGKILL. It should be\n"
    "longer than --grace, which is {} s.\n"
    "A run that ended at its time limit (exit code 124) can go on: submit the file again.";

constexpr auto kStartTimeOfLsf = std::chrono::seconds(60);  // until all nodes have joined

std::string time_of_lsf(const BatchRun& run) {
  if (!run.timeout) return "# The command has no --timeout, so the time limit is that of the queue.\n";
  const auto minutes =
      std::chrono::ceil<std::chrono::minutes>(*run.timeout + run.stop_time() + kStartTimeOfLsf).count();
  return fmt::format(
      "# Longer than --timeout, so that fleetrun itself ends the run in time.\n#BSUB -W {:02}:{:02}\n",
      minutes / 60, minutes % 60);
}

std::string hosts_of_lsf(const BatchRun& run) {
  if (run.nodes == 1) return "";
  return meeting_port(run, "(LSB_JOBID + 2503 * ${LSB_JOBINDEX:-0})") +
         "mapfile -t hosts < <(awk '!seen[$0]++' \"$LSB_DJOB_HOSTFILE\")\n";
}

std::string others_of_lsf() {
  return R"(# This script runs on the first host. blaunch starts the others, in the same folder and with the same environment.
for ((rank = 1; rank < ${#hosts[@]}; ++rank)); do
  start "$rank" blaunch -z "${hosts[rank]}" -no-shell &
done
)";
}

}  // namespace

std::string write_lsf(const BatchRun& run) {
  return fill(
      kLsfFile,
      {{"header", file_header(run, fmt::format("LSF batch file for a run on {}.", plural(run.nodes, "node")),
                              fmt::format(kHowToBsub, run.name, run.grace.count()))},
       {"name", run.name},
       {"nodes", std::to_string(run.nodes)},
       {"gpus",
        run.gpus == 0 ? "" : fmt::format("# For each host.\n#BSUB -gpu \"num={}:mode=shared\"\n", run.gpus)},
       {"cores",
        run.cores
            ? fmt::format("#BSUB -R \"affinity[core({})]\"\n", *run.cores)
            : "# Whole hosts. To share a host with other jobs, use -R \"affinity[core(N)]\" instead.\n#BSUB -x\n"},
       {"queue", run.own.queue.empty() ? "" : fmt::format("#BSUB -q {}\n", run.own.queue)},
       {"time", time_of_lsf(run)},
       {"folder", change_folder(run)},
       {"fleetrun", program_name(run)},
       {"arguments", arguments_array(run)},
       {"log_dir", quote_word(run.log_dir)},
       {"hosts", hosts_of_lsf(run)},
       {"start", start_nodes(run, others_of_lsf())},
       {"wait", wait_for_first_node(run)}});
}

}  // namespace fleetrun::launch
