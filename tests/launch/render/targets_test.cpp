// The files of all targets. scripts/cluster has whole examples, which e2e_test compares with what the program prints.
#include <doctest/doctest.h>

#include "base/error/error.h"
#include "launch/render/target.h"

namespace fleetrun::launch::targets_test {
namespace {

using Words = std::vector<std::string>;

std::string file_for(const char* target, Words words, const RenderFlags& own = {.folder = "/srv"},
                     const JobFacts& job = std::nullopt) {
  if (std::string(target) == "ssh") words.insert(words.begin(), "--ips=a,b");
  const Target& row = find_target(target);
  return row.write(plan_batch_run(row, own, words, job));
}

bool has(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

bool has_line(const std::string& text, const std::string& line) {
  return has("\n" + text, "\n" + line + "\n");
}

TEST_CASE("every file says at its top what made it") {
  for (const Target& target : targets()) {
    INFO(target.name);
    const std::string text =
        file_for(std::string(target.name).c_str(), {"-n", "2", "--", "sh", "-c", "a\nb 'c'"},
                 {.folder = "/srv", .as_typed = {"--folder=/srv"}});
    CHECK(has(text, "# Made by: fleetrun render " + std::string(target.name) + " --folder=/srv -- "));
    CHECK(has(text, "sh -c 'a\n# b '\\''c'\\'''\n"));  // a line break in a word begins no line of the file
    CHECK_FALSE(has(text, "<<"));
  }
}

TEST_CASE("Slurm's directives say what the flags say") {
  const std::string text =
      file_for("slurm", {"--nnodes=3", "--nproc_per_node=8", "--timeout=90000", "--job_id=Big", "train.py"},
               {.queue = "gpu"});
  for (const char* line :
       {"#SBATCH --job-name=big", "#SBATCH --nodes=3", "#SBATCH --ntasks-per-node=1",
        "#SBATCH --gpus-per-node=8", "#SBATCH --partition=gpu", "#SBATCH --time=1-01:00:00",
        "#SBATCH --requeue", "#SBATCH --open-mode=append", "#SBATCH --signal=B:USR1@90", "resumes=false"})
    CHECK_MESSAGE(has_line(text, line), line);
  CHECK_FALSE(has(text, "--timeout=90000\n  "));
}

TEST_CASE("a time limit that is shorter than Slurm's notice leaves the notice out") {
  const std::string text = file_for("slurm", {"-n", "1", "--timeout=90", "train.py"});
  CHECK_FALSE(has(text, "#SBATCH --signal"));
  CHECK(has(text, "# The time limit is shorter than the 90 s before it"));
  CHECK(has_line(file_for("slurm", {"-n", "1", "--timeout=91", "train.py"}), "#SBATCH --signal=B:USR1@90"));
}

TEST_CASE("Slurm's notice leaves time for a long --grace") {
  CHECK(has_line(file_for("slurm", {"-n", "1", "--grace=100", "train.py"}), "#SBATCH --signal=B:USR1@160"));
}

TEST_CASE("a run of one node has no meeting point") {
  for (const char* target : {"slurm", "pbs", "lsf", "k8s", "kubeflow", "jobset", "volcano", "systemd"}) {
    const std::string text = file_for(target, {"-n", "1", "train.py"});
    INFO(target);
    CHECK_FALSE(has(text, "--master"));
    CHECK_FALSE(has(text, "--node_rank"));
    CHECK_FALSE(has(text, "key"));
  }
}

TEST_CASE("hunt 16: a run with spares is elastic, also without MIN:MAX") {
  const auto text_for = [](const char* target) {
    return file_for(target, {"--nnodes=4", "--spares=1", "-n", "1", "t.py"});
  };
  CHECK(has(text_for("slurm"), "#SBATCH --no-kill\n"));
  CHECK(has(text_for("slurm"), "while it has 3 nodes or more"));
  CHECK(has(text_for("slurm"), "--nnodes=\"$SLURM_JOB_NUM_NODES\" "));
}

TEST_CASE(
    "hunt 25: when a run on several nodes has finished, the code of a node that was lost does not count") {
  for (const char* target : {"slurm", "pbs", "lsf"}) {
    for (const char* nodes : {"--nnodes=4", "--nnodes=2:4"})
      CHECK(has(
          file_for(target, {nodes, "-n", "1", "t.py"}),
          "-newermt \"@$began\" \\\n  -exec grep -q '^  \"cause\": \"finished\"' {} \\; -print -quit 2>/dev/null | grep -q .; then\n  code=0\n"));
    CHECK_FALSE(has(file_for(target, {"-n", "1", "t.py"}), "report.json"));
  }
}

TEST_CASE("hunt 16: a script for ssh lets an elastic run go on without a host") {
  const auto text_for = [](const char* nnodes) {
    return file_for("ssh", {nnodes, "--ips=a,b,c", "-n", "1", "t.py"});
  };
  const std::string elastic = text_for("--nnodes=2:3"), fixed = text_for("--nnodes=3");
  CHECK(has(elastic, "[ \"$lost\" = 2 ]"));
  CHECK(has(fixed, "[ \"$lost\" = 1 ]"));
  CHECK(has(elastic, "kill -s KILL \"$run\""));
  CHECK(has(fixed, "kill -s TERM \"$run\""));
  CHECK(has(elastic, "pass_on $signal ${inputs[*]}"));
}

TEST_CASE("hunt 16: the elements of a job array have ports and folders of their own") {
  const Words words = {"--nnodes=2", "-n", "1", "t.py"};
  CHECK(has(file_for("pbs", words), "2503 * ${PBS_ARRAY_INDEX:-0}"));
  CHECK(has(file_for("lsf", words), "2503 * ${LSB_JOBINDEX:-0}"));
  CHECK(has(file_for("lsf", words), "logs+=\"-$LSB_JOBINDEX\""));
}

TEST_CASE("every target asks for MAX nodes of --nnodes=MIN:MAX, and fleetrun gets both numbers") {
  const auto text_for = [](const char* target) {
    return file_for(target, {"--nnodes=2:4", "-n", "1", "t.py"});
  };
  CHECK(has_line(text_for("slurm"), "#SBATCH --nodes=4"));
  CHECK(has(text_for("slurm"), "--nnodes=\"2:$SLURM_JOB_NUM_NODES\" "));
  CHECK(has_line(text_for("slurm"), "#SBATCH --no-kill"));
  CHECK(has(text_for("slurm"), " --no-kill --kill-on-bad-exit=0 "));
  CHECK(!has(file_for("slurm", {"--nnodes=4", "-n", "1", "t.py"}), "--no-kill"));
  CHECK(has(text_for("pbs"), "#PBS -l select=4:"));
  for (const char* target : {"pbs", "lsf"}) CHECK(has(text_for(target), "--nnodes=\"2:${#hosts[@]}\" "));
  for (const char* target : {"k8s", "kubeflow", "jobset", "volcano"})
    CHECK(has(text_for(target), "- \"--nnodes=2:4\"\n"));
  CHECK(has(text_for("k8s"), "- \"--rejoin_at=t-0.t,t-1.t,t-2.t,t-3.t\"\n"));
  CHECK(has(text_for("kubeflow"), "- \"--rejoin_at=t-master-0,t-worker-0,t-worker-1,t-worker-2\"\n"));
  for (const char* all_pods_are_replaced : {"jobset", "volcano"})
    CHECK_FALSE(has(text_for(all_pods_are_replaced), "--rejoin_at"));
  CHECK(has(text_for("ssh"), "--nnodes=2:4"));
  CHECK(has(file_for("systemd", {"--nnodes=2:4", "--master=a:1", "t.py"}), "--nnodes=2:4"));
}

TEST_CASE("PBS gets one chunk per node and a walltime beyond --timeout") {
  const std::string text =
      file_for("pbs", {"--nnodes=2", "--gpus=0,1", "--timeout=100", "--env=LR", "--env=WD", "t.py"});
  CHECK(has_line(text, "#PBS -l select=2:ngpus=2:mpiprocs=1"));
  CHECK(has_line(text, "#PBS -l walltime=00:03:25"));  // 100 s, 60 s to start, and 10 + 30 + 5 s to stop
  CHECK(has_line(text, "#PBS -v LR,WD"));
  CHECK(has(text, R"("LR=${LR-}" "WD=${WD-}")"));
  CHECK(has_line(text, "  --timeout=100"));
}

TEST_CASE("LSF gets one slot per host, and starts the job again only after code 75") {
  const std::string text = file_for("lsf", {"--nnodes=2", "--gpus=0,1", "--timeout=100", "t.py"});
  for (const char* line : {"#BSUB -n 2", "#BSUB -R \"span[ptile=1]\"", "#BSUB -gpu \"num=2:mode=shared\"",
                           "#BSUB -W 00:04", "#BSUB -Q \"75\""})
    CHECK_MESSAGE(has_line(text, line), line);
}

TEST_CASE("cores instead of whole nodes when the job file limits its threads") {
  job::JobSpec job;
  job.train.threads = 2;
  job.data.loader_threads = 1;
  const RenderFlags own = {.folder = "/srv"};
  CHECK(has_line(file_for("slurm", {"-n", "4", "job.json"}, own, job), "#SBATCH --cpus-per-task=12"));
  CHECK(has_line(file_for("pbs", {"-n", "4", "job.json"}, own, job),
                 "#PBS -l select=1:ncpus=12:ngpus=4:mpiprocs=1"));
  CHECK(has_line(file_for("lsf", {"-n", "4", "job.json"}, own, job), "#BSUB -R \"affinity[core(12)]\""));
  CHECK(has_line(file_for("k8s", {"-n", "4", "job.json"}, own, job), "              cpu: 12"));
}

TEST_CASE("Kubernetes gives fleetrun more time than --grace, and repeats no failure that would repeat") {
  const std::string text =
      file_for("k8s", {"--nnodes=2", "-n", "1", "--grace=60", "--kill_wait=5", "--timeout=10", "t.py"});
  for (const char* line :
       {"      terminationGracePeriodSeconds: 70", "  activeDeadlineSeconds: 10", "  completions: 2",
        "  backoffLimit: 6", "          values: [2, 65, 66, 76, 77, 78, 80, 93, 126, 127]",
        "            - \"--node_rank=$(JOB_COMPLETION_INDEX)\"", "            - \"--master=t-0.t:6069\"",
        "            defaultMode: 0400", "            - \"--key_file=/run/fleetrun/key\""})
    CHECK_MESSAGE(has_line(text, line), line);
}

TEST_CASE("the key of a manifest comes from --key_file, and --insecure needs none") {
  CHECK(has(file_for("k8s", {"--nnodes=2", "-n", "1", "--key_file=my key", "t.py"}),
            "--from-file=key='my key'\n"));
  for (const char* target : {"k8s", "kubeflow", "jobset", "volcano"})
    CHECK_FALSE(has(file_for(target, {"--nnodes=2", "-n", "1", "--insecure", "t.py"}), "key"));
}

TEST_CASE("Kubeflow's master is node 0, and its workers are the others") {
  const std::string text = file_for("kubeflow", {"--nnodes=5", "-n", "1", "t.py"}, {.image = "me/img:1"});
  CHECK(has_line(text, "      replicas: 4"));
  CHECK(has(text, "- \"--master=t-master-0:6069\""));
  CHECK(has(text, "image: \"me/img:1\""));
  CHECK_FALSE(has(file_for("kubeflow", {"-n", "1", "t.py"}), "Worker"));
}

TEST_CASE("a JobSet makes all pods again after a failure that another attempt may not repeat") {
  const std::string text = file_for("jobset", {"--nnodes=3", "-n", "1", "--timeout=10", "t.py"});
  for (const char* line :
       {"    enableDNSHostnames: true", "          completions: 3", "          backoffLimit: 0",
        "    maxRestarts: 3", "        onJobFailureReasons: [PodFailurePolicy, DeadlineExceeded]",
        "          activeDeadlineSeconds: 10",
        "                  values: [2, 65, 66, 76, 77, 78, 80, 93, 126, 127]",
        "                    - \"--node_rank=$(JOB_COMPLETION_INDEX)\"",
        "                    - \"--master=t-nodes-0-0.t:6069\""})
    CHECK_MESSAGE(has_line(text, line), line);
  const std::string single = file_for("jobset", {"-n", "1", "t.py"});
  CHECK(has_line(single, "        onJobFailureReasons: [PodFailurePolicy]"));
  CHECK_FALSE(has(single, "network:"));
}

TEST_CASE("Volcano starts all pods together, and all of them again after code 75") {
  const std::string text =
      file_for("volcano", {"--nnodes=3", "-n", "1", "--timeout=10", "t.py"}, {.queue = "gpu"});
  for (const char* line :
       {"  queue: \"gpu\"", "  minAvailable: 3", "    - exitCode: 75",
        "    svc: [\"--publish-not-ready-addresses=true\"]", "      replicas: 3",
        "                - \"--node_rank=$(VC_TASK_INDEX)\"",
        "                - \"--master=t-node-0.t:6069\"", "                - \"--timeout=10\""})
    CHECK_MESSAGE(has_line(text, line), line);
  CHECK_FALSE(has(file_for("volcano", {"-n", "1", "t.py"}), "queue"));
}

TEST_CASE("a unit of systemd stops only fleetrun, and starts again only after code 75") {
  const std::string text = file_for("systemd", {"--grace=20", "t.py", "50%"});
  for (const char* line :
       {"WorkingDirectory=/srv", "KillMode=mixed", "TimeoutStopSec=55", "SuccessExitStatus=143", "Restart=no",
        "RestartForceExitStatus=75", "ExecStart=/usr/bin/fleetrun \\", "  50%%"})
    CHECK_MESSAGE(has_line(text, line), line);
  CHECK(has(file_for("systemd", {"--ips=a,b", "t.py"}), "  --log_dir=log/%H \\\n"));
  CHECK_THROWS_WITH_AS(file_for("systemd", {"t.py"}, RenderFlags()),
                       "a unit for systemd needs --folder, the folder where the run starts", Error);
}

}  // namespace
}  // namespace fleetrun::launch::targets_test
