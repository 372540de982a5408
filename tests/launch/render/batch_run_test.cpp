#include "launch/render/batch_run.h"

#include <doctest/doctest.h>

#include "base/error/error.h"
#include "launch/render/target.h"

namespace fleetrun::launch::batch_run_test {
namespace {

using Words = std::vector<std::string>;
using namespace std::chrono_literals;

BatchRun plan(const char* target, const Words& words, const JobFacts& job = std::nullopt) {
  return plan_batch_run(find_target(target), {}, words, job);
}

std::string refusal(const char* target, const Words& words) {
  try {
    plan(target, words);
  } catch (const Error& error) {
    CHECK(error.kind() == ErrorKind::usage);
    return error.message();
  }
  return "accepted";
}

job::JobSpec job_on(job::DeviceChoice device) {
  job::JobSpec job;
  job.device = device;
  return job;
}

TEST_CASE("what a system says in its own words is no flag of fleetrun any more") {
  const BatchRun run =
      plan("slurm", {"--nnodes=4", "--nproc_per_node", "8", "--timeout=3600.5", "--log_dir=logs",
                     "--grace=30", "--master_port=7000", "train.py", "--lr=0.1"});
  CHECK(run.nodes == 4);
  CHECK(run.gpus == 8);
  CHECK(run.timeout == 3601s);
  CHECK(run.log_dir == "logs");
  CHECK(run.port == 7000);
  CHECK(run.flags == Words{"--nproc_per_node=8", "--grace=30"});
  CHECK(run.program == Words{"train.py", "--lr=0.1"});
}

TEST_CASE("a system without a time limit of its own leaves --timeout to fleetrun") {
  CHECK(plan("pbs", {"--nproc_per_node=1", "--timeout=60", "train.py"}).flags ==
        Words{"--nproc_per_node=1", "--timeout=60"});
}

TEST_CASE("GPU ids become a number, because the system chooses the GPUs") {
  const BatchRun run = plan("slurm", {"--gpus=4,5,6,7", "train.py"});
  CHECK(run.gpus == 4);
  CHECK(run.flags == Words{"--nproc_per_node=4"});
  CHECK(plan("slurm", {"--gpus=4,5,6,7", "-n", "2", "train.py"}).flags == Words{"--nproc_per_node=2"});
  CHECK(plan("systemd", {"--gpus=4,5", "train.py"}).flags == Words{"--gpus=4,5"});
}

TEST_CASE("a run on the CPU gets no GPU, whether a flag or the job file says so") {
  CHECK(plan("k8s", {"--device=cpu", "--nproc_per_node=2", "train.py"}).gpus == 0);
  CHECK(plan("k8s", {"--nproc_per_node=2", "job.json"}, job_on(job::DeviceChoice::cpu)).gpus == 0);
  CHECK(plan("k8s", {"--nproc_per_node=cpu", "train.py"}).gpus == 0);
  CHECK(plan("k8s", {"--nproc_per_node=2", "job.json"}, job_on(job::DeviceChoice::cuda)).gpus == 2);
}

TEST_CASE("a job file that limits its threads asks for as many cores") {
  job::JobSpec job;
  CHECK_FALSE(plan("slurm", {"--nproc_per_node=4", "job.json"}, job).cores.has_value());
  job.train.threads = 3;
  job.data.loader_threads = 2;
  CHECK(plan("slurm", {"--nproc_per_node=4", "job.json"}, job).cores == 20);
}

TEST_CASE("only a job file that resumes from its newest checkpoint goes on after a time limit") {
  job::JobSpec job;
  CHECK_FALSE(plan("slurm", {"--nproc_per_node=4", "job.json"}, job).resumes);
  job.checkpoint.dir = "checkpoints";
  CHECK(plan("slurm", {"--nproc_per_node=4", "job.json"}, job).resumes);
  job.checkpoint.resume = "never";
  CHECK_FALSE(plan("slurm", {"--nproc_per_node=4", "job.json"}, job).resumes);
}

TEST_CASE("the name comes from --job_id or from the program") {
  CHECK(plan("ssh", {"--ips=a,b", "configs/ResNet 50_v1.json"}, job::JobSpec()).name == "resnet-50-v1");
  CHECK(plan("ssh", {"--ips=a,b", "--job_id=My run!", "train.py"}).name == "my-run");
  CHECK(plan("ssh", {"--ips=a,b", "50.py"}).name == "run-50");
  CHECK(plan("ssh", {"--ips=a,b", "--", "\xc3\xa9"}).name == "run");
  CHECK(plan("ssh", {"--ips=a,b", std::string(100, 'x') + ".py"}).name.size() == kLongestName);
}

TEST_CASE("a program keeps the -- that tells it from a flag or a subcommand") {
  CHECK(plan("systemd", {"--", "stop", "-x"}).program == Words{"--", "stop", "-x"});
  CHECK(plan("systemd", {"train.py", "--"}).program == Words{"train.py", "--"});
  CHECK(plan("systemd", {"-m", "--", "train"}).program == Words{"train"});
}

TEST_CASE("flags that name hosts make no sense where the system chooses them") {
  for (const char* flag : {"--ips=a,b", "--hosts=a:1,b:1", "--hostfile=hosts", "--host=a", "--master=a:1",
                           "--master_addr=a", "--rdzv_endpoint=a:1", "--node_rank=0"})
    CHECK(refusal("slurm", {flag, "--nproc_per_node=1", "train.py"}) ==
          std::string(flag).substr(0, std::string(flag).find('=')) +
              " makes no sense in a file for slurm: Slurm chooses the hosts");
  CHECK(refusal("kubeflow", {"--standalone", "train.py"}) ==
        "--standalone makes no sense in a file for kubeflow: Kubernetes chooses the hosts");
  CHECK(plan("systemd", {"--ips=a,b", "train.py"}).flags == Words{"--ips=a,b"});
}

TEST_CASE("a system must know the number of GPUs") {
  CHECK(refusal("slurm", {"train.py"}) ==
        "the flags do not say how many GPUs each node needs, which Slurm must know");
  CHECK(refusal("slurm", {"--nproc_per_node=auto", "train.py"}) ==
        "the flags do not say how many GPUs each node needs, which Slurm must know");
  CHECK(refusal("slurm", {"--device=cpu", "train.py"}) == "accepted");
  CHECK(refusal("systemd", {"train.py"}) == "accepted");
}

TEST_CASE("a script for ssh needs the hosts") {
  CHECK(refusal("ssh", {"train.py"}) == "a script for ssh needs --ips: the hosts on which it starts the run");
  CHECK(plan("ssh", {"--ips=a,b", "train.py"}).hosts == Words{"a", "b"});
  CHECK(plan("ssh", {"--ips=a,b", "train.py"}).nodes == 2);
  CHECK(refusal("ssh", {"--ips=a,b", "--node_rank=1", "train.py"}) ==
        "a script for ssh cannot contain --node_rank: it gives each host of --ips its number");
}

TEST_CASE("a unit for several hosts says where they meet") {
  CHECK(refusal("systemd", {"--nnodes=2", "train.py"}) ==
        "a file for systemd on 2 nodes needs --master or --ips: where the nodes meet");
  for (const char* place : {"--master=a:1", "--ips=a,b", "--rdzv_endpoint=a:1", "--master_addr=a"})
    CHECK(refusal("systemd", {"--nnodes=2", place, "train.py"}) == "accepted");
}

TEST_CASE("a flag that starts no run is refused") {
  for (const char* flag : {"--help", "--version", "--show_config", "--dry_run"})
    CHECK(refusal("slurm", {flag, "train.py"}) ==
          std::string(flag) + " starts no run, so a file for slurm cannot contain it");
}

TEST_CASE("a variable without a value needs a system that passes on the environment") {
  CHECK(plan("pbs", {"--nproc_per_node=1", "--env=LR", "--env=A=1", "train.py"}).inherited == Words{"LR"});
  CHECK(refusal("k8s", {"--nproc_per_node=1", "--env=LR", "train.py"}) ==
        "--env LR takes the value from the shell, which k8s does not pass on");
}

TEST_CASE("flags of render that would break the file are refused") {
  const auto refused = [](const RenderFlags& own) {
    try {
      plan_batch_run(find_target("slurm"), own, {"--nproc_per_node=1", "train.py"}, std::nullopt);
    } catch (const Error& error) {
      return error.message();
    }
    return std::string("accepted");
  };
  CHECK(refused({.folder = "runs"}) == "--folder is \"runs\", wanted a path that begins with /");
  CHECK(refused({.folder = "/a\n#SBATCH x"}) ==
        "--folder is \"/a?#SBATCH x\", wanted a path without control characters");
  CHECK(refused({.queue = "a b"}) == "--queue is \"a b\", wanted letters, digits and _ . , -");
  CHECK(refused({.folder = "/a b", .queue = "gpu_long"}) == "accepted");
}

TEST_CASE("a queue or an image is refused where the file has no place for it") {
  const auto refused = [](const char* target, const RenderFlags& own) {
    try {
      plan_batch_run(find_target(target), own, {"--nproc_per_node=1", "train.py"}, std::nullopt);
    } catch (const Error& error) {
      return error.message();
    }
    return std::string("accepted");
  };
  CHECK(refused("k8s", {.queue = "gpu"}) ==
        "a file for k8s has no place for --queue; slurm, pbs, lsf or volcano takes it");
  CHECK(refused("slurm", {.image = "me/img:1"}) ==
        "a file for slurm has no place for --image; k8s, kubeflow, jobset or volcano takes it");
  CHECK(refused("volcano", {.image = "me/img:1", .queue = "gpu"}) == "accepted");
}

TEST_CASE("an unknown target is refused with the one that was meant") {
  CHECK_THROWS_WITH_AS(
      find_target("slrum"),
      "there is no target \"slrum\", wanted slurm, pbs, lsf, k8s, kubeflow, jobset, volcano, systemd or ssh; did you "
      "mean slurm?",
      Error);
  CHECK_THROWS_WITH_AS(
      find_target("x"),
      "there is no target \"x\", wanted slurm, pbs, lsf, k8s, kubeflow, jobset, volcano, systemd or ssh",
      Error);
}

}  // namespace
}  // namespace fleetrun::launch::batch_run_test
