#include "launch/plan/cluster.h"

#include <doctest/doctest.h>

#include "base/error/error.h"
#include "launch/cli/command_line.h"

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
                    const std::optional<EmbeddedRuntime>& embedded = {}) {
  return resolve_cluster(options_of(words), host, embedded, {});
}

std::string error_of(const std::vector<std::string>& words, const HostFacts& host,
                     const std::optional<EmbeddedRuntime>& embedded = {}) {
  try {
    resolve(words, host, embedded);
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
  CHECK(cluster.device == DeviceKind::cpu);
  CHECK_FALSE(cluster.device_ids_given);
  CHECK(cluster.cores == 8);
}

TEST_CASE("GPUs that are asked for and not there are an error that names the way out") {
  CHECK(
      error_of({"--gpus=0,1"}, kCpuHost) ==
      "--gpus is 0,1, but this machine has no CUDA device | with --device=cpu the ids are CPU worker slots");
  CHECK(error_of({"--device=cuda"}, kCpuHost) ==
        "--device is cuda, but this machine has no CUDA device | --device=cpu runs on the CPU");
  CHECK(error_of({}, kCpuHost, EmbeddedRuntime{.device = job::DeviceChoice::cuda}) ==
        "the job's device is cuda, but this machine has no CUDA device | --device=cpu runs on the CPU");
}

TEST_CASE("CUDA_VISIBLE_DEVICES=-1 keeps the ranks off the GPUs") {
  Environment environment;
  environment.set("CUDA_VISIBLE_DEVICES", "-1");
  const ClusterSpec cluster = resolve_cluster(options_of({"--nproc_per_node=2"}), kGpuHost, {}, environment);
  CHECK(cluster.device == DeviceKind::cpu);
  CHECK(cluster.hide_gpus);
  CHECK_THROWS_WITH_AS(resolve_cluster(options_of({"--gpus=0"}), kGpuHost, {}, environment),
                       "--gpus is 0, but CUDA_VISIBLE_DEVICES is -1", Error);
}

TEST_CASE("this host may have an IPv6 address") {
  HostFacts host = kCpuHost;
  host.addresses.insert(host.addresses.end(), {"::1", "fd00::5"});
  CHECK(resolve({"--ips=[fd00::5]"}, host).host == "fd00::5");
  CHECK(resolve({"--ips=FD00:0::5"}, host).ipv6);
  CHECK(resolve({"--host=[::1]"}, host).host == "::1");
  CHECK_FALSE(resolve({}, host).ipv6);
  CHECK(resolve({"--master=[fd00::5]:7000"}, host).master == Endpoint{"fd00::5", 7000});
  CHECK(resolve({"--rdzv_endpoint=[::1]"}, host).master == Endpoint{"::1", 0});
  CHECK(
      error_of({"--ips=fd00::6"}, host)
          .starts_with(
              "--ips names fd00::6, which is not an address of this host (127.0.0.1, 10.0.0.5, ::1, fd00::5)"));
}

TEST_CASE("with --device=cpu the ids are worker slots") {
  const ClusterSpec cluster = resolve({"--gpus=0,1,2", "--device=cpu"}, kCpuHost);
  CHECK(cluster.world_size() == 3);
  CHECK(cluster.device_ids_given);
  CHECK(cluster.device == DeviceKind::cpu);
}

TEST_CASE("a port of the master that --start_port gives to a rank is an error") {
  const auto error = [](const std::string& master) {
    return error_of({"--nproc_per_node=2", "--start_port=30000", master}, kCpuHost);
  };
  CHECK(error("--master=127.0.0.1:30001") ==
        "the master's port is 30001, which --start_port=30000 gives to rank 1 | --master or --start_port "
        "chooses another port");
  CHECK(error("--master_port=30000").starts_with("the master's port is 30000, which --start_port=30000"));
  for (const char* port : {"30002", "29999"})
    CHECK(resolve({"--nproc_per_node=2", "--start_port=30000", std::string("--master=127.0.0.1:") + port},
                  kCpuHost)
              .world_size() == 2);
}

TEST_CASE("with --device=cpu the ids are read as those of GPUs") {
  const auto error = [](const std::string& ids) {
    return error_of({"--device=cpu", "--gpus=" + ids}, kCpuHost);
  };
  for (const std::string ids : {"0,", ",", "0,,1"})
    CHECK(error(ids) == "--gpus has an empty item, must be ids like 0,1,2,3");
  CHECK(error("0,0") == "--gpus lists 0 twice");
  for (const std::string id : {"0-3", "all", "-1", "GPU-1"})
    CHECK(error("0," + id) == "--gpus lists " + id + ", with --device=cpu it must be ids like 0,1,2,3");
  CHECK(resolve({"--device=cpu", "--gpus=7"}, kCpuHost).world_size() == 1);
}

TEST_CASE("errors name a flag as the user wrote it") {
  CHECK(error_of({"--device=cpu", "--devices", "0,0"}, kCpuHost) == "--devices lists 0 twice");
  CHECK(error_of({"--device=cpu", "--selected-gpus=0,a"}, kCpuHost) ==
        "--selected_gpus lists a, with --device=cpu it must be ids like 0,1,2,3");
  CHECK(
      error_of({"--devices=0,1"}, kCpuHost) ==
      "--devices is 0,1, but this machine has no CUDA device | with --device=cpu the ids are CPU worker slots");
  CHECK(error_of({"--device=cpu", "--devices=0,1,2", "-n", "2"}, kCpuHost) ==
        "-n is 2, which does not divide the 3 devices");
}

TEST_CASE("on a GPU machine each GPU gets a worker") {
  const ClusterSpec cluster = resolve({}, kGpuHost);
  CHECK(cluster.device == DeviceKind::cuda);
  CHECK(cluster.world_size() == 4);
  CHECK(cluster.visible_gpus.size() == 4);
  CHECK(cluster.device_ids_given);
}

TEST_CASE("the CPU of a GPU machine can be chosen, and then no worker sees a GPU") {
  const ClusterSpec cluster = resolve({"--device=cpu", "--nproc_per_node=2"}, kGpuHost);
  CHECK(cluster.device == DeviceKind::cpu);
  CHECK(cluster.hide_gpus);
}

TEST_CASE("a job on a GPU machine needs the plug-in, a script does not") {
  HostFacts host = kGpuHost;
  host.cuda_plugin = false;
  CHECK(resolve({}, host).device == DeviceKind::cuda);
  CHECK(
      error_of({}, host, EmbeddedRuntime()) ==
      "this machine has 4 CUDA devices, but this installation has no CUDA plug-in (libfleetrun_cuda.so) | --device=cpu runs on the CPU");
  CHECK(resolve({"--device=cpu"}, host, EmbeddedRuntime()).device == DeviceKind::cpu);
  CHECK(resolve({}, host, EmbeddedRuntime{.device = job::DeviceChoice::cpu}).device == DeviceKind::cpu);
}

TEST_CASE("the command line's device wins over the job's") {
  CHECK(resolve({"--device=cuda"}, kGpuHost, EmbeddedRuntime{.device = job::DeviceChoice::cpu}).device ==
        DeviceKind::cuda);
}

TEST_CASE("addresses must be this host's") {
  CHECK(resolve({"--ips=10.0.0.5"}, kCpuHost).host == "10.0.0.5");
  CHECK(resolve({"--host=10.0.0.5"}, kCpuHost).host == "10.0.0.5");
  CHECK(
      error_of({"--ips=10.0.0.6"}, kCpuHost) ==
      "--ips names 10.0.0.6, which is not an address of this host (127.0.0.1, 10.0.0.5) | a run over several nodes lists all of them in --ips, or has --nnodes and --master (docs/many-hosts.md)");
  CHECK(error_of({"--node_rank=1"}, kCpuHost) ==
        "--node_rank is 1, but there is one node | --nnodes or --ips says how many there are");
  CHECK(error_of({"--master=10.0.0.6:6170"}, kCpuHost).starts_with("--master names 10.0.0.6"));
  CHECK(resolve({"--master=127.0.0.1:6170"}, kCpuHost).master == Endpoint{"127.0.0.1", 6170});
}

TEST_CASE("slots that the number of workers does not divide are refused") {
  CHECK(error_of({"--gpus=0,1,2", "--device=cpu", "--nproc_per_node=2"}, kCpuHost) ==
        "--nproc_per_node is 2, which does not divide the 3 devices");
}

HostFacts with_name(HostFacts host) {
  host.name = "node7.example.org";
  return host;
}

TEST_CASE("as many workers as the host has GPUs or cores") {
  CHECK(resolve({"--nproc_per_node=cpu"}, kCpuHost).world_size() == 8);
  CHECK(resolve({"--nproc_per_node=auto"}, kCpuHost).world_size() == 8);
  CHECK(resolve({"--nproc_per_node=auto"}, kGpuHost).world_size() == 4);
  CHECK(resolve({"--nproc_per_node=gpu"}, kGpuHost).world_size() == 4);
  CHECK(resolve({"--nproc_per_node=cpu"}, kGpuHost).world_size() == 8);
  CHECK(resolve({"--nproc_per_node=cpu"}, kGpuHost).device == DeviceKind::cpu);
  CHECK(resolve({"--nproc_per_node=auto", "--gpus=0,1", "--device=cpu"}, kCpuHost).world_size() == 2);
  CHECK(
      error_of({"--nproc_per_node=gpu"}, kCpuHost) ==
      "--nproc_per_node is gpu, but this machine has no CUDA device | --nproc_per_node=cpu starts a worker per core");
  CHECK(error_of({"--nproc_per_node=gpu", "--device=cpu"}, kGpuHost) ==
        "--nproc_per_node is gpu, but the run is on the CPU | --nproc_per_node=cpu starts a worker per core");
}

TEST_CASE("called torchrun, a worker has the GPU of its local rank, whatever their numbers") {
  const auto device_ids = [](const std::vector<std::string>& words) {
    return resolve_cluster(parse_launch_options(words, {}, CalledAs::torchrun).options, kGpuHost, {}, {})
        .device_ids;
  };
  CHECK(device_ids({"x"}) == std::vector<std::vector<int>>{{0}});
  CHECK(device_ids({"--nproc-per-node=3", "x"}) == std::vector<std::vector<int>>{{0}, {1}, {2}});
  CHECK(device_ids({"--nproc-per-node=5", "x"}) == std::vector<std::vector<int>>{{0}, {1}, {2}, {3}, {0}});
  CHECK(device_ids({"--nproc-per-node=gpu", "x"}).size() == 4);
}

TEST_CASE("hosts with slots count the workers, and are this host") {
  CHECK(resolve({"-H", "localhost:3"}, kCpuHost).world_size() == 3);
  CHECK(resolve({"-H", "localhost:3", "-n", "2"}, kCpuHost).world_size() == 2);
  CHECK(resolve({"-H", "localhost", "-n", "2"}, kCpuHost).world_size() == 2);
  CHECK(error_of({"-H", "localhost:3", "-n", "4"}, kCpuHost) == "-H gives 3 slots, -n asks for 4 workers");
  CHECK(
      error_of({"-H", "localhost:1,node8:1"}, kCpuHost) ==
      "-H names node8, which is not an address of this host (127.0.0.1, 10.0.0.5) | a run over several nodes lists all of them in --ips, or has --nnodes and --master (docs/many-hosts.md)");
}

TEST_CASE("torchrun's addresses become the master's") {
  const auto master = [](const std::vector<std::string>& words) {
    return resolve(words, with_name(kCpuHost)).master;
  };
  CHECK_FALSE(master({"--standalone", "--rdzv-endpoint=127.0.0.1:29400"}));
  CHECK(master({"--rdzv-endpoint=10.0.0.5:29400"}) == Endpoint{"10.0.0.5", 29400});
  CHECK(master({"--rdzv-endpoint=localhost"}) == Endpoint{"localhost", 0});
  CHECK(master({"--master-port=29501"}) == Endpoint{"127.0.0.1", 29501});
  CHECK(master({"--master-addr=10.0.0.5"}) == Endpoint{"10.0.0.5", 0});
  CHECK(master({"--master-addr=node7", "--master-port=29501"}) == Endpoint{"node7", 29501});
  CHECK(master({"--rdzv-endpoint=node7.example.org:29400"}) == Endpoint{"node7.example.org", 29400});
  CHECK(error_of({"--rdzv-endpoint=node:29400"}, with_name(kCpuHost))
            .starts_with("--rdzv_endpoint names node,"));
}

}  // namespace
}  // namespace fleetrun::launch::cluster_test
