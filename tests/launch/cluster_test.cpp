#include "launch/cluster.h"

#include <doctest/doctest.h>

#include "base/error.h"

namespace fleetrun::launch::cluster_test {
namespace {

const HostFacts kCpuHost = {
    .addresses = {"127.0.0.1", "10.0.0.5"}, .gpus = 0, .cores = 8, .cuda_plugin = false};
const HostFacts kGpuHost = {
    .addresses = {"127.0.0.1", "10.0.0.5"}, .gpus = 4, .cores = 8, .cuda_plugin = true};

LaunchOptions options_of(std::vector<std::string> words) {
  words.emplace_back("program");
  return parse_launch_options(words, {}).options;
}

ClusterSpec resolve(const std::vector<std::string>& words, const HostFacts& host,
                    const ProgramNeeds& needs = {}) {
  return resolve_cluster(options_of(words), host, needs, {});
}

std::string error_of(const std::vector<std::string>& words, const HostFacts& host,
                     const ProgramNeeds& needs = {}) {
  try {
    resolve(words, host, needs);
  } catch (const Error& error) {
    CHECK(error.exit_code() == 2);
    return error.message() + (error.hint().empty() ? "" : " | " + error.hint());
  }
  return "no error";
}

TEST_CASE("on a CPU machine there is one worker, or as many as asked for") {
  CHECK(resolve({}, kCpuHost).world_size() == 1);
  const ClusterSpec cluster = resolve({"--nproc_per_node=3"}, kCpuHost);
  CHECK(cluster.world_size() == 3);
  CHECK(cluster.device == Device::cpu);
  CHECK_FALSE(cluster.device_ids_given);
  CHECK(cluster.cores == 8);
}

TEST_CASE("GPUs that are asked for and not there are an error that names the way out") {
  CHECK(
      error_of({"--gpus=0,1"}, kCpuHost) ==
      "--gpus is 0,1, but this machine has no CUDA device | with --device=cpu the ids are CPU worker slots");
  CHECK(error_of({"--device=cuda"}, kCpuHost) ==
        "--device is cuda, but this machine has no CUDA device | --device=cpu runs on the CPU");
  CHECK(error_of({}, kCpuHost, {.embedded_runtime = true, .device = job::DeviceChoice::cuda}) ==
        "the job's device is cuda, but this machine has no CUDA device | --device=cpu runs on the CPU");
}

TEST_CASE("with --device=cpu the ids are worker slots") {
  const ClusterSpec cluster = resolve({"--gpus=0,1,2", "--device=cpu"}, kCpuHost);
  CHECK(cluster.world_size() == 3);
  CHECK(cluster.device_ids_given);
  CHECK(cluster.device == Device::cpu);
}

TEST_CASE("on a GPU machine each GPU gets a worker") {
  const ClusterSpec cluster = resolve({}, kGpuHost);
  CHECK(cluster.device == Device::cuda);
  CHECK(cluster.world_size() == 4);
  CHECK(cluster.visible_gpus.size() == 4);
  CHECK(cluster.device_ids_given);
}

TEST_CASE("the CPU of a GPU machine can be chosen, and then no worker sees a GPU") {
  const ClusterSpec cluster = resolve({"--device=cpu", "--nproc_per_node=2"}, kGpuHost);
  CHECK(cluster.device == Device::cpu);
  CHECK(cluster.hide_gpus);
}

TEST_CASE("a job on a GPU machine needs the plug-in, a script does not") {
  HostFacts host = kGpuHost;
  host.cuda_plugin = false;
  CHECK(resolve({}, host).device == Device::cuda);
  CHECK(error_of({}, host, {.embedded_runtime = true}) ==
        "this machine has 4 CUDA devices, but this installation has no CUDA plug-in (libfleetrun_cuda.so) | "
        "--device=cpu runs on the CPU");
  CHECK(resolve({"--device=cpu"}, host, {.embedded_runtime = true}).device == Device::cpu);
  CHECK(resolve({}, host, {.embedded_runtime = true, .device = job::DeviceChoice::cpu}).device ==
        Device::cpu);
}

TEST_CASE("the command line's device wins over the job's") {
  CHECK(resolve({"--device=cuda"}, kGpuHost, {.embedded_runtime = true, .device = job::DeviceChoice::cpu})
            .device == Device::cuda);
}

TEST_CASE("addresses must be this host's") {
  CHECK(resolve({"--ips=10.0.0.5"}, kCpuHost).host == "10.0.0.5");
  CHECK(resolve({"--host=10.0.0.5"}, kCpuHost).host == "10.0.0.5");
  CHECK(error_of({"--ips=10.0.0.6"}, kCpuHost) ==
        "--ips names 10.0.0.6, which is no address of this host (127.0.0.1, 10.0.0.5) | runs over several "
        "nodes are "
        "not supported yet");
  CHECK(error_of({"--ips=10.0.0.5,10.0.0.6"}, kCpuHost) ==
        "--ips lists 2 nodes: more than one node is not supported yet");
  CHECK(error_of({"--master=10.0.0.6:6170"}, kCpuHost).starts_with("--master names 10.0.0.6"));
  CHECK(resolve({"--master=127.0.0.1:6170"}, kCpuHost).master == Endpoint{"127.0.0.1", 6170});
}

TEST_CASE("slots that the number of workers does not divide are refused") {
  CHECK(error_of({"--gpus=0,1,2", "--device=cpu", "--nproc_per_node=2"}, kCpuHost) ==
        "--nproc_per_node is 2, which does not divide the 3 devices");
}

}  // namespace
}  // namespace fleetrun::launch::cluster_test
