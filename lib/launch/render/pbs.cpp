// A batch file for PBS Professional and OpenPBS: directives of qsub, and pbsdsh, as in the PBS Professional reference guide.
#include <fmt/format.h>

#include "base/text/plural.h"
#include "launch/cli/flags/shell_words.h"
#include "launch/render/batch_text.h"
#include "launch/render/shell_parts.h"
#include "launch/render/writers.h"

namespace fleetrun::launch {
namespace {

constexpr std::string_view kPbsFile = R"(#!/bin/bash
<<header>>
# shellcheck disable=SC2016  # what is in single quotes is not for this shell

#PBS -N <<pbs_name>>
# Each node is one chunk, with one line in the node file (mpiprocs=1): one fleetrun starts the ranks of its node.
#PBS -l select=<<nodes>>:<<cores>><<gpus>>mpiprocs=1
<<place>>
<<queue>>
<<time>>
#PBS -j oe
# PBS may start the job again after a node has failed.
#PBS -r y
<<inherited>>

set -u
<<folder>>

fleetrun=<<fleetrun>>
<<arguments>>
# Each node writes its own logs.
logs=<<log_dir>>/$PBS_JOBID
<<hosts>>

<<start>>
<<wait>>
)";

constexpr std::string_view kHowToQsub =
    "Submit it:       qsub {}.pbs\n"
    "Stop:            qdel JOBID\n"
    "When a job is stopped, PBS waits kill_delay (10 s by default) before it sends SIGKILL. The kill_delay of the queue should be\n"
    "longer than --grace, which is {} s.\n"
    "A run that ended at its time limit (exit code 124) or because it lost a node (75) can go on: submit the file again.";

constexpr auto kStartTimeOfPbs = std::chrono::seconds(60);  // until all nodes have joined

std::string time_of_pbs(const BatchRun& run) {
  if (!run.timeout) return "# The command has no --timeout, so the time limit is that of the queue.\n";
  return fmt::format(
      "# Longer than --timeout, so that fleetrun itself ends the run in time.\n#PBS -l walltime={}\n",
      hours_minutes_seconds(*run.timeout + run.stop_time() + kStartTimeOfPbs));
}

std::string inherited_by_pbs(const BatchRun& run) {
  std::string text;
  for (const std::string& name : run.inherited) text += (text.empty() ? "#PBS -v " : ",") + name;
  return text;
}

std::string hosts_of_pbs(const BatchRun& run) {
  if (run.nodes == 1) return "";
  return meeting_port(run, "(${PBS_JOBID%%[!0-9]*} + 2503 * ${PBS_ARRAY_INDEX:-0})") +
         "mapfile -t hosts < <(awk '!seen[$0]++' \"$PBS_NODEFILE\")\n";
}

// pbsdsh passes no environment and starts in the home folder.
std::string others_of_pbs(const BatchRun& run) {
  std::string variables = R"("PATH=$PATH" "HOME=$HOME")";
  for (const std::string& name : run.inherited) variables += fmt::format(" \"{0}=${{{0}-}}\"", name);
  return fill(
      R"(# This script runs on the first node. pbsdsh starts the others, without an environment and in the home folder.
for ((rank = 1; rank < ${#hosts[@]}; ++rank)); do
  start "$rank" pbsdsh -n "$rank" -- /usr/bin/env <<variables>> \
    /bin/bash -c 'cd "$0" && exec "$@"' "$PWD" &
done
)",
      {{"variables", variables}});
}

}  // namespace

std::string write_pbs(const BatchRun& run) {
  constexpr std::size_t kLongestPbsName = 15;  // of Torque and old versions of PBS
  return fill(
      kPbsFile,
      {{"header", file_header(run, fmt::format("PBS batch file for a run on {}.", plural(run.nodes, "node")),
                              fmt::format(kHowToQsub, run.name, run.grace.count()))},
       {"pbs_name", run.name.substr(0, kLongestPbsName)},
       {"nodes", std::to_string(run.nodes)},
       {"cores", run.cores ? fmt::format("ncpus={}:", *run.cores) : ""},
       {"gpus", run.gpus == 0 ? "" : fmt::format("ngpus={}:", run.gpus)},
       {"place",
        run.cores
            ? "#PBS -l place=scatter\n"
            : "# Whole hosts. To share a host with other jobs, add ncpus=N to select and remove :exclhost.\n"
              "#PBS -l place=scatter:exclhost\n"},
       {"queue", run.own.queue.empty() ? "" : fmt::format("#PBS -q {}\n", run.own.queue)},
       {"time", time_of_pbs(run)},
       {"inherited", inherited_by_pbs(run)},
       {"folder", run.own.folder.empty() ? "cd \"$PBS_O_WORKDIR\" || exit 66\n" : change_folder(run)},
       {"fleetrun", program_name(run)},
       {"arguments", arguments_array(run)},
       {"log_dir", quote_word(run.log_dir)},
       {"hosts", hosts_of_pbs(run)},
       {"start", start_nodes(run, others_of_pbs(run))},
       {"wait", wait_for_first_node(run)}});
}

}  // namespace fleetrun::launch
