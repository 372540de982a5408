// Runs in jobs of a real Slurm with two nodes.
#include <unistd.h>

#include <filesystem>
#include <string>

#include "e2e/launcher.h"
#include "support/leave_out.h"

namespace fleetrun::slurm_test {
namespace {

const std::string kSource = FLEETRUN_SOURCE_DIR;

std::optional<std::string> missing() {
  if (::geteuid() != 0) return "a Slurm of one's own needs root";
  if (run_child(
          {"/bin/sh", "-c",
           "PATH=$PATH:/usr/sbin:/sbin; command -v slurmctld && command -v slurmd && command -v munged && "
           "unshare -m -p -f -n --mount-proc true"})
          .code != 0)
    return "there is no Slurm (slurm-wlm, munge), or no namespaces";
  return std::nullopt;
}

// state JOB: the last state of a job. await JOB STATE: until it has that state. until_true COMMAND: until it succeeds.
constexpr const char* kFunctions = R"sh(
state() { scontrol show job "$1" | grep -o 'JobState=[A-Z_]*' | cut -d= -f2; }
until_true() {
  for ((try = 0; try < 1200; ++try)); do eval "$1" && return; sleep 0.1; done
  echo "never: $1"; exit 9
}
await() { until_true "[ \"\$(state $1)\" = $2 ]"; }
)sh";

// A folder where jobs start, and a Slurm for one script at a time. Everything that a script leaves ends with its Slurm.
struct Site {
  Site() { std::filesystem::create_directory(folder / "home"); }

  // The script runs on the login node, in `folder`. "$fleetrun" is the program.
  ChildResult run(const std::string& script) const {
    folder.write("script",
                 "set -u\ncd " + (folder / "") + "\nfleetrun=" FLEETRUN_BINARY "\n" + kFunctions + script);
    return ChildProcess(
               {"/usr/bin/timeout", "170", "unshare", "-m", "-p", "-f", "-n", "--mount-proc", "--kill-child",
                kSource + "/tests/support/slurm_cluster", folder / "slurm", "bash", folder / "script"},
               {.folder = folder / "",
                .environment = {{"HOME", folder / "home"}, {"fleetrun", FLEETRUN_BINARY}}})
        .wait(std::chrono::seconds(180));
  }

  TemporaryFolder folder;
};

TEST_CASE("srun with one fleetrun per node makes one run, without a flag about nodes") {
  if (const auto why = missing()) LEAVE_OUT(*why);
  const Site site;
  const ChildResult end = site.run(
      "srun -N2 --ntasks-per-node=1 \"$fleetrun\" --nproc_per_node=2 --console=all --cgroup=none -- "
      "sh -c 'echo \"rank $RANK of $WORLD_SIZE, node $SLURM_NODEID\"'");
  CHECK_MESSAGE(end.code == 0, end.out, end.err);
  for (const char* line :
       {"rank 0 of 4, node 0", "rank 1 of 4, node 0", "rank 2 of 4, node 1", "rank 3 of 4, node 1"})
    CHECK_MESSAGE(contains(end.out, line), end.out, end.err);
}

TEST_CASE("S5: when a rank fails all nodes end with its code, also where srun would not stop them") {
  if (const auto why = missing()) LEAVE_OUT(*why);
  const Site site;
  const ChildResult end = site.run(
      "srun -N2 --ntasks-per-node=1 --kill-on-bad-exit=0 \"$fleetrun\" --nproc_per_node=1 --cgroup=none -- "
      "sh -c '[ $RANK = 1 ] && exit 7; exec sleep 60'; echo \"srun $?\"");
  CHECK_MESSAGE(contains(end.out, "srun 7\n"), end.out, end.err);
  CHECK_MESSAGE(contains(end.err, "rank 1 exited with code 7"), end.err);
}

TEST_CASE("a batch script without srun says which line starts all nodes") {
  if (const auto why = missing()) LEAVE_OUT(*why);
  const Site site;
  const ChildResult end = site.run(
      "job=$(sbatch --parsable -N2 --output=out --wrap=\"$fleetrun -- /bin/true\"); await $job FAILED; "
      "scontrol show job $job | grep -o ' ExitCode=[0-9:]*'; cat out");
  CHECK_MESSAGE(contains(end.out, " ExitCode=2:0"), end.out, end.err);
  CHECK_MESSAGE(contains(end.out, "srun --ntasks-per-node=1 fleetrun"), end.out);
}

const std::string kBatch =
    "cat > batch <<'END'\n#!/bin/bash\nexec srun --ntasks-per-node=1 \"$fleetrun\" --cgroup=none "
    "--nproc_per_node=1 -- \"$@\"\nEND\n";

TEST_CASE("what waits with afterok or afternotok for a run starts when it should") {
  if (const auto why = missing()) LEAVE_OUT(*why);
  const Site site;
  const ChildResult end = site.run(
      kBatch +
      "good=$(sbatch --parsable -N2 batch true)\n"
      "bad=$(sbatch --parsable -N2 batch sh -c '[ $RANK = 1 ] && exit 5; exec sleep 60')\n"
      "after_good=$(sbatch --parsable -n1 --dependency=afterok:$good --wrap=true)\n"
      "after_bad=$(sbatch --parsable -n1 --dependency=afternotok:$bad --wrap=true)\n"
      "never=$(sbatch --parsable -n1 --dependency=afterok:$bad --kill-on-invalid-dep=yes --wrap=true)\n"
      "await $good COMPLETED; await $bad FAILED; await $after_good COMPLETED; await $after_bad COMPLETED; "
      "await $never CANCELLED\n"
      "scontrol show job $bad | grep -o ' ExitCode=[0-9:]*'");
  CHECK_MESSAGE(end.code == 0, end.out, end.err);
  CHECK_MESSAGE(contains(end.out, " ExitCode=5:0"), end.out, end.err);
}

TEST_CASE("S2: scancel ends the run on all nodes with 143, and leaves no process") {
  if (const auto why = missing()) LEAVE_OUT(*why);
  const Site site;
  const ChildResult end =
      site.run(kBatch +
               "job=$(sbatch --parsable -N2 batch sh -c 'echo $$ > pid$RANK; exec sleep 77')\n"
               "until_true '[ -e pid0 ] && [ -e pid1 ]'\n"
               "scancel $job; await $job CANCELLED\n"
               "until_true '! pgrep -f \"sleep 77\" >/dev/null && ! pgrep -x fleetrun >/dev/null'\n"
               "grep -o '\"exit_code\": *[0-9]*' log/report.json log.node1/report.json");
  CHECK_MESSAGE(end.code == 0, end.out, end.err);
  for (const char* folder : {"log/", "log.node1/"})
    CHECK_MESSAGE(contains(end.out, std::string(folder) + "report.json:\"exit_code\": 143"), end.out,
                  end.err);
}

TEST_CASE(
    "S1, S4: a rendered batch file that is told of its time limit saves, is queued again, goes on, and ends with the bytes of a run "
    "that nobody stopped") {
  if (const auto why = missing()) LEAVE_OUT(*why);
  const auto weights_of = [](bool interrupted) {
    const Site site;
    site.folder.write("job.json", R"({
      "model": {"name": "mlp", "hidden": [64]},
      "data": {"train": {"format": "synthetic", "samples": 8192, "shape": [1, 8, 8], "classes": 4}, "batch_size": 16},
      "optimizer": {"name": "momentum", "learning_rate": 0.001},
      "checkpoint": {"dir": "checkpoints", "every_steps": 200, "resume": "auto"},
      "train": {"max_steps": 4000, "log_every": 1000}
    })");
    const std::string notice =
        "until_true 'ls output/checkpoints/*-step-*'\n"
        "scancel --batch --signal=USR1 $job; until_true 'scontrol show job $job | grep -q Restarts=1'\n"
        "scontrol update JobId=$job StartTime=now\n";
    const ChildResult end = site.run(
        "\"$fleetrun\" render slurm --folder=\"$PWD\" --fleetrun=\"$fleetrun\" -- --nnodes=2 --nproc_per_node=1 --device=cpu "
        "--cgroup=none job.json > batch || exit 8\n"
        "sed -i '/--exclusive/d' batch\n"
        "job=$(sbatch --parsable batch)\n" +
        (interrupted ? notice : "") + "await $job COMPLETED; cat *.out");
    CHECK_MESSAGE(end.code == 0, end.out, end.err);
    if (interrupted) CHECK_MESSAGE(contains(end.out, "resumes from the newest checkpoint"), end.out);
    return site.folder.read("output/model.safetensors");
  };
  const std::string wanted = weights_of(false);
  CHECK_FALSE(wanted.empty());
  CHECK((weights_of(true) == wanted));
}

}  // namespace
}  // namespace fleetrun::slurm_test
