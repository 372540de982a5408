// A batch file for Slurm: options of sbatch and srun as in their manual pages (slurm.schedmd.com).
#include <algorithm>
#include <cstdint>

#include <fmt/format.h>

#include "base/text/plural.h"
#include "launch/cli/flags/shell_words.h"
#include "launch/render/batch_text.h"
#include "launch/render/shell_parts.h"
#include "launch/render/writers.h"

namespace fleetrun::launch {
namespace {

constexpr std::string_view kSlurmFile = R"(#!/bin/bash
<<header>>
# shellcheck disable=SC2016  # what is in single quotes is not for this shell

#SBATCH --job-name=<<name>>
#SBATCH --nodes=<<nodes>>
# One fleetrun per node. It starts the ranks of its node.
#SBATCH --ntasks-per-node=1
<<gpus>>
<<cores>>
<<queue>>
<<time>>
#SBATCH --output=<<name>>-%j.out
# After a requeue, Slurm appends to this file.
#SBATCH --open-mode=append
# Slurm starts the job again when a node fails or another job preempts it.
#SBATCH --requeue
<<no_kill>>
<<notice>>

set -u
<<folder>>

fleetrun=<<fleetrun>>
<<arguments>>
# Each node writes its own logs.
logs=<<log_dir>>/$SLURM_JOB_ID
<<master>>

<<start>>
run=$!

# The time limit is near: every rank gets SIGTERM. A rank of a job file with checkpoints saves one. The exit code is 143.
notice=false
trap 'again=true; notice=true
  "$fleetrun" stop --log_dir="$logs<<first>>" || scancel --signal=TERM "$SLURM_JOB_ID"' USR1
# scancel and preemption: Slurm sends SIGTERM to fleetrun, too.
trap 'again=true' TERM

<<wait>>

<<resumes>>
if [ "$code" = 75 ] && [ "${SLURM_RESTART_COUNT:-0}" -lt 3 ]; then
  echo "exit code 75: fleetrun lost a node or a connection; starting the job again"
  scontrol requeue "$SLURM_JOB_ID"
elif $notice && $resumes && [ "$code" = 143 ]; then
  echo "stopped before the time limit; starting the job again, which resumes from the newest checkpoint"
  scontrol requeue "$SLURM_JOB_ID"
fi
exit "$code"
)";

constexpr std::string_view kHowToSbatch =
    "Submit it:       sbatch {0}.sbatch\n"
    "See the ranks:   fleetrun ps --log_dir={1}   (on the first node)\n"
    "Save and stop:   scancel --batch --signal=USR1 JOBID\n"
    "Stop:            scancel JOBID";

// Slurm sends the signal up to 60 s early or late, and the ranks have --grace to end.
std::chrono::seconds notice_of(const BatchRun& run) {
  constexpr auto kUsual = std::chrono::seconds(90), kInaccuracy = std::chrono::seconds(60);
  return std::max<std::chrono::seconds>(kUsual, run.grace + kInaccuracy);
}

// Slurm would send it at the start of a job whose time limit is shorter.
std::string notice_line(const BatchRun& run) {
  const std::int64_t seconds = notice_of(run).count();
  if (run.timeout && *run.timeout <= notice_of(run))
    return fmt::format(
        "# The time limit is shorter than the {} s before it at which Slurm could send a notice. So the run saves nothing then.\n",
        seconds);
  return fmt::format(
      "# Slurm sends SIGUSR1 to this script {0} s before the time limit. The trap below stops the run.\n"
      "#SBATCH --signal=B:USR1@{0}\n",
      seconds);
}

std::string cores_of(const BatchRun& run) {
  if (run.cores) return fmt::format("#SBATCH --cpus-per-task={}\n", *run.cores);
  return "# All cores of each node. To share a node with other jobs, use --cpus-per-task=N instead.\n#SBATCH --exclusive\n";
}

std::string time_of(const BatchRun& run) {
  if (run.timeout) return fmt::format("#SBATCH --time={}\n", days_hours_minutes_seconds(*run.timeout));
  return "# The command has no --timeout, so the time limit is that of the partition.\n";
}

std::string master_of(const BatchRun& run) {
  if (run.nodes == 1) return "";
  return meeting_port(run, "SLURM_JOB_ID") +
         "master=$(scontrol show hostnames \"$SLURM_JOB_NODELIST\" | head -n 1)\n";
}

// Without it Slurm ends the job when it loses a node (sbatch and srun, --no-kill).
std::string no_kill_lines(const BatchRun& run) {
  if (!run.least_nodes) return "";
  return fmt::format(
      "# When a node fails, the run goes on while it has {} or more. Only if it cannot, the job starts again.\n"
      "#SBATCH --no-kill\n",
      plural(*run.least_nodes, "node"));
}

// fleetrun itself stops all nodes when one fails, so srun must neither kill nor stop waiting.
std::string start_of(const BatchRun& run) {
  const std::string cpus = run.cores ? fmt::format(" --cpus-per-task={}", *run.cores) : "";
  if (run.nodes == 1)
    return fmt::format(
        "srun --ntasks=1{} --cpu-bind=none \"$fleetrun\" --log_dir=\"$logs\" \"${{arguments[@]}}\" &\n",
        cpus);
  return fill(
      R"(# When one node fails, fleetrun stops the others. So srun must not kill them (--kill-on-bad-exit) or hurry them (--wait).
srun --ntasks-per-node=1<<cpus>> --cpu-bind=none<<no_kill>> --kill-on-bad-exit=0 --wait=0 \
  bash -c 'exec "$0" --node_rank="$SLURM_NODEID" --log_dir="$1/node-$SLURM_NODEID" "${@:2}"' \
  "$fleetrun" "$logs" --nnodes="<<nnodes>>" --master="$master:$port" "${arguments[@]}" &
)",
      {{"cpus", cpus},
       {"no_kill", run.least_nodes ? " --no-kill" : ""},
       {"nnodes", nnodes_value(run, "$SLURM_JOB_NUM_NODES")}});
}

std::string resumes_of(const BatchRun& run) {
  if (run.resumes)
    return "# The job file has checkpoints, so the job can go on after its time limit.\nresumes=true\n";
  return "# Set this to true if the program resumes from its own checkpoints: the job then goes on after its time limit.\n"
         "resumes=false\n";
}

}  // namespace

std::string write_slurm(const BatchRun& run) {
  const std::string first = run.nodes == 1 ? "" : "/node-0";
  return fill(kSlurmFile,
              {{"header",
                file_header(run, fmt::format("Slurm batch file for a run on {}.", plural(run.nodes, "node")),
                            fmt::format(kHowToSbatch, run.name, quote_word(run.log_dir + "/JOBID" + first)))},
               {"name", run.name},
               {"nodes", std::to_string(run.nodes)},
               {"gpus", run.gpus == 0 ? "" : fmt::format("#SBATCH --gpus-per-node={}\n", run.gpus)},
               {"cores", cores_of(run)},
               {"queue", run.own.queue.empty() ? "" : fmt::format("#SBATCH --partition={}\n", run.own.queue)},
               {"time", time_of(run)},
               {"no_kill", no_kill_lines(run)},
               {"notice", notice_line(run)},
               {"folder", change_folder(run)},
               {"fleetrun", program_name(run)},
               {"arguments", arguments_array(run)},
               {"log_dir", quote_word(run.log_dir)},
               {"master", master_of(run)},
               {"start", start_of(run)},
               {"first", first},
               {"wait", wait_for_run(run) + code_of_finished_run(run)},
               {"resumes", resumes_of(run)}});
}

}  // namespace fleetrun::launch
