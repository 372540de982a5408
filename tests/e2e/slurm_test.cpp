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
                .environment =
                    {{"HOME", folder / "home"},
                     {"fleetrun", FLEETRUN_BINARY},
                     // Slurm sends SIGCONT before SIGTERM, and the sanitizer's leak check spins for ever
                     // if one comes while it runs.
                     {"ASAN_OPTIONS", "detect_leaks=0"}}})
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

TEST_CASE("in a batch script fleetrun starts the other nodes through srun, and its output comes once") {
  if (const auto why = missing()) LEAVE_OUT(*why);
  const Site site;
  site.folder.write(
      "script.sh",
      "#!/bin/bash\nexport OF_THE_SCRIPT=yes\n\"$fleetrun\" --nproc_per_node=2 --console=all --cgroup=none "
      "-- sh -c 'echo \"rank $RANK of $WORLD_SIZE, $OF_THE_SCRIPT\"'\n");
  const ChildResult end = site.run(
      "job=$(sbatch --parsable -N2 --output=out script.sh); await $job COMPLETED; cat out; ls home -A");
  CHECK_MESSAGE(end.code == 0, end.out, end.err);
  for (const char* line : {"rank 0 of 4, yes", "rank 1 of 4, yes", "rank 2 of 4, yes", "rank 3 of 4, yes"})
    CHECK_MESSAGE(contains(end.out, line), end.out, end.err);
  const std::string banner = "Configuration Arguments";
  CHECK_MESSAGE(contains(end.out, banner), end.out);
  CHECK_MESSAGE(end.out.find(banner) == end.out.rfind(banner), end.out);
  CHECK_FALSE(contains(end.out, ".fleetrun"));  // the key goes over standard input
}

TEST_CASE("in a batch script the exit code is that of the rank that failed on another node") {
  if (const auto why = missing()) LEAVE_OUT(*why);
  const Site site;
  site.folder.write("script.sh",
                    "#!/bin/bash\nexec \"$fleetrun\" --nproc_per_node=1 --cgroup=none -- sh -c "
                    "'[ $RANK = 1 ] && exit 7; exec sleep 60'\n");
  const ChildResult end = site.run(
      "job=$(sbatch --parsable -N2 --output=out script.sh); await $job FAILED; "
      "scontrol show job $job | grep -o ' ExitCode=[0-9:]*'; cat out");
  CHECK_MESSAGE(contains(end.out, " ExitCode=7:0"), end.out, end.err);
  CHECK_MESSAGE(contains(end.out, "rank 1 exited with code 7"), end.out);
}

TEST_CASE("in a batch script a node that cannot start ends the job at once, with its reason") {
  if (const auto why = missing()) LEAVE_OUT(*why);
  const Site site;
  site.folder.write("log.node1", "a file of mine");
  const ChildResult end = site.run(
      "job=$(sbatch --parsable -N2 --output=out --wrap='\"$fleetrun\" --cgroup=none -- sleep 60')\n"
      "await $job FAILED; scontrol show job $job | grep -o ' ExitCode=[0-9:]*'; cat out");
  CHECK_MESSAGE(contains(end.out, " ExitCode=73:0"), end.out, end.err);
  CHECK_MESSAGE(contains(end.out, "node 1 (n2): "), end.out);
  CHECK_MESSAGE(contains(end.out, "log.node1"), end.out);
}

TEST_CASE("in a batch script fleetrun doctor starts itself on the other node, and its table has both") {
  if (const auto why = missing()) LEAVE_OUT(*why);
  const Site site;
  site.folder.write("script.sh",
                    "#!/bin/bash\n\"$fleetrun\" doctor --json --device=cpu --nproc_per_node=1 > answer\n"
                    "\"$fleetrun\" doctor --device=cpu --nproc_per_node=1\ntrue\n");
  const ChildResult end =
      site.run("job=$(sbatch --parsable -N2 --output=out script.sh); await $job COMPLETED; cat out");
  CHECK_MESSAGE(end.code == 0, end.out, end.err);
  const nlohmann::json answer = nlohmann::json::parse(site.folder.read("answer"));
  CHECK_MESSAGE(answer["nodes"].size() == 2, end.out);
  CHECK_MESSAGE(answer["links"].size() == 2, end.out);
  for (const char* node : {"n1", "n2"}) CHECK_MESSAGE(contains(end.out, node), end.out);
}

TEST_CASE("scancel of a batch script with a plain fleetrun ends both nodes with 143, and leaves no process") {
  if (const auto why = missing()) LEAVE_OUT(*why);
  const Site site;
  site.folder.write("script.sh",
                    "#!/bin/bash\nexec \"$fleetrun\" --nproc_per_node=1 --cgroup=none -- sh -c "
                    "': > up$RANK; exec sleep 77'\n");
  const ChildResult end = site.run(
      "job=$(sbatch --parsable -N2 --output=out script.sh)\n"
      "until_true '[ -e up0 ] && [ -e up1 ]'\n"
      "scancel $job; await $job CANCELLED\n"
      "until_true '! pgrep -f \"sleep 77\" >/dev/null && ! pgrep -x fleetrun >/dev/null && ! pgrep -x srun'\n"
      "grep -o '\"exit_code\": *[0-9]*' log/report.json log.node1/report.json");
  CHECK_MESSAGE(end.code == 0, end.out, end.err);
  for (const char* folder : {"log/", "log.node1/"})
    CHECK_MESSAGE(contains(end.out, std::string(folder) + "report.json:\"exit_code\": 143"), end.out,
                  end.err);
}

TEST_CASE("SIGKILL of the fleetrun in a batch script ends the other node, too") {
  if (const auto why = missing()) LEAVE_OUT(*why);
  const Site site;
  site.folder.write("script.sh",
                    "#!/bin/bash\n\"$fleetrun\" --nproc_per_node=1 --cgroup=none -- sh -c "
                    "': > up$RANK; exec sleep 77' & echo $! > front; wait; sleep 60\n");
  const ChildResult end = site.run(
      "job=$(sbatch --parsable -N2 --output=out script.sh)\n"
      "until_true '[ -e up0 ] && [ -e up1 ]'; kill -9 $(cat front)\n"
      "until_true '! pgrep -f \"sleep 77\" >/dev/null && ! pgrep -x fleetrun >/dev/null && ! pgrep -x srun'\n"
      "state $job; scancel $job");
  CHECK_MESSAGE(end.code == 0, end.out, end.err);
  CHECK(contains(end.out, "RUNNING"));  // the nodes ended because of fleetrun, not of Slurm
}

TEST_CASE("S3: when Slurm's daemons of a node are killed the run ends, and no rank is left there") {
  if (const auto why = missing()) LEAVE_OUT(*why);
  const Site site;
  site.folder.write("script.sh",
                    "#!/bin/bash\nexec \"$fleetrun\" --nproc_per_node=1 --cgroup=none -- sh -c "
                    "': > up$RANK; exec sleep 77'\n");
  const ChildResult end = site.run(
      "job=$(sbatch --parsable -N2 --no-requeue --output=out script.sh)\n"
      "until_true '[ -e up0 ] && [ -e up1 ]'\n"
      "kill -9 $(pgrep -f 'slurmd -N n2'); kill -9 $(pgrep -f 'slurmstepd: .*\\.0\\]')\n"
      "until_true '! pgrep -f \"sleep 77\" >/dev/null && ! pgrep -x fleetrun >/dev/null'\n"
      "until_true 'state '$job' | grep -q -e FAILED -e NODE_FAIL'; state $job\n"
      "grep -o '\"exit_code\": *[0-9]*' log/report.json; cat out");
  CHECK_MESSAGE(end.code == 0, end.out, end.err);
  CHECK_MESSAGE(contains(end.out, "\"exit_code\": 75"), end.out, end.err);
  CHECK_MESSAGE(contains(end.out, "lost node 1 (n2)"), end.out, end.err);
}

TEST_CASE("an elastic run of a rendered batch file goes on without a node that fails, and Slurm lets it") {
  if (const auto why = missing()) LEAVE_OUT(*why);
  const Site site;
  site.folder.write("job.json", R"({
    "model": {"name": "mlp", "hidden": [64]},
    "data": {"train": {"format": "synthetic", "samples": 8192, "shape": [1, 8, 8], "classes": 4}, "batch_size": 16, "uneven": "drop"},
    "optimizer": {"name": "momentum", "learning_rate": 0.001},
    "checkpoint": {"dir": "checkpoints", "every_steps": 200, "resume": "auto"},
    "train": {"epochs": 100, "log_every": 10000, "threads": 1}
  })");
  const ChildResult end = site.run(
      "\"$fleetrun\" render slurm --folder=\"$PWD\" --fleetrun=\"$fleetrun\" -- --nnodes=1:2 --nproc_per_node=1 --device=cpu "
      "--cgroup=none --max_restart=1 job.json > batch || exit 8\n"
      "sed -i '/--exclusive/d' batch\n"
      "job=$(sbatch --parsable batch)\n"
      "until_true 'ls output/checkpoints/*-step-* >/dev/null 2>&1'\n"
      "on_n2() { grep -lz '^SLURM_NODEID=1$' $(pgrep fleetrun | sed 's|.*|/proc/&/environ|') | cut -d/ -f3; }\n"
      "two=$(on_n2)\n"  // the parent of the first is Slurm's daemon for the step
      "kill -9 $(pgrep -f 'slurmd -N n2') $(for pid in $two; do ps -o ppid= $pid; done) $two\n"
      "until_true 'sinfo -h -n n2 -o %T | grep -q down'\n"
      "await $job COMPLETED; cat log/*/node-0/report.json");
  CHECK_MESSAGE(end.code == 0, end.out, end.err);
  const auto report = nlohmann::json::parse(end.out.substr(end.out.find("\n{") + 1));
  CHECK(report["cause"] == "finished");
  CHECK(report["train"]["world_size"] == 1);
  CHECK(report["train"]["epochs"] == 100);
  REQUIRE(report["stand_stills"].size() == 1);
  // Lost, or its front process was killed first.
  CHECK_MESSAGE(contains(report["stand_stills"][0]["why"], "node 1 ("), report["stand_stills"].dump());
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
      "train": {"max_steps": 4000, "log_every": 1000, "threads": 1}
    })");
    const std::string notice =
        "until_true 'ls output/checkpoints/*-step-*'\n"
        "scancel --batch --signal=USR1 $job; until_true 'scontrol show job $job | grep -q Restarts=1'\n"
        // Slurm lets a job that is queued again wait for two minutes, and may set that time after our update.
        "until_true 'scontrol update JobId=$job StartTime=now; case $(state $job) in RUNNING|COMPLETED) ;; *) false ;; esac'\n";
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

// As Kubernetes and Docker end a container.
TEST_CASE("S6: SIGTERM to fleetrun as process 1 of a container ends the ranks in their own way, with 143") {
  if (::geteuid() != 0 || run_child({"/bin/sh", "-c", "unshare -m -p -f --mount-proc true"}).code != 0)
    LEAVE_OUT("there are no namespaces");
  const TemporaryFolder folder;
  const ChildResult end = run_child(
      {"/usr/bin/timeout", "50", "bash", "-c",
       kFunctions +
           std::string(
               "unshare -m -p -f --mount-proc " FLEETRUN_BINARY " --nproc_per_node=2 --cgroup=none -- sh -c "
               "'trap \": > saved$RANK; exit 0\" TERM; : > up$RANK; while :; do sleep 0.05; done' & outer=$!\n"
               "until_true '[ -e up0 ] && [ -e up1 ]'; kill -TERM $(pgrep -P $outer)\n"
               "wait $outer; echo \"code $?\"; ls")},
      {.folder = folder.path()});
  CHECK_MESSAGE(contains(end.out, "code 143"), end.out, end.err);
  CHECK(folder.has("saved0"));
  CHECK(folder.has("saved1"));
}

}  // namespace
}  // namespace fleetrun::slurm_test
