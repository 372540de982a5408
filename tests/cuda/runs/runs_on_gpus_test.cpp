// Runs on hosts with two GPUs each, of CUDA on the host and NCCL between its processes, beside the same runs on CPUs.
#include "e2e/nodes/cluster.h"
#include "e2e/weight_files.h"
#include "runtime/data/image_files.h"
#include "support/leave_out.h"

namespace fleetrun::runs_on_gpus_test {
namespace {

constexpr double kFar = 1e-4;  // between weights after the steps of kJob on GPUs and on CPUs
const std::string kWeights = "output/model.safetensors";

const std::string kJob = R"({
  "model": {"name": "lenet"},
  "data": {"train": {"format": "synthetic", "samples": 320, "shape": [1, 28, 28], "classes": 4}, "batch_size": 4},
  "optimizer": {"name": "momentum", "learning_rate": 0.01},
  "strategy": {"cudnn_exhaustive_search": false},
  "train": {"max_steps": 8, "log_every": 1}
})";

const std::string kTestSet =
    R"(data.test={"format": "synthetic", "samples": 70, "shape": [1, 28, 28], "classes": 4})";

std::optional<std::string> missing_for_gpus() {
  if (!is_root() || !can_mount()) return "GPUs cannot be put into /dev here";
  return std::nullopt;
}

// The nodes have two GPUs each.
class GpuCluster : public Cluster {
 public:
  explicit GpuCluster(int nodes, const Namespaces* network = nullptr) : Cluster(nodes, network) {
    for (int node = 0; node < nodes; ++node) {
      start_after(node, {WITH_GPUS, "2"});
      set(node, "FLEETRUN_ON_HOST_DEVICES", "2");
      std::ofstream(folder(node) + "/job.json") << kJob;
    }
  }

  // The weights that rank 0 saves. Every node must end with code 0.
  std::string weights_after(const Words& words) {
    for (const ChildResult& end : run(words)) REQUIRE_MESSAGE(end.code == 0, end.err);
    return read(0, kWeights);
  }
};

std::string weights_on_cpus(int ranks, const Words& keys = {}) {
  const Launch launch;
  launch.folder.write("job.json", kJob);
  Words words = {"--device=cpu", "--nproc_per_node=" + std::to_string(ranks), "job.json"};
  words.insert(words.end(), keys.begin(), keys.end());
  const ChildResult end = launch.run_words(words);
  REQUIRE_MESSAGE(end.code == 0, end.err);
  return launch.folder.read(kWeights);
}

TEST_CASE("the ranks of a host get a GPU each, and end with the weights of a run on CPUs") {
  if (const auto missing = missing_for_gpus()) LEAVE_OUT(*missing);
  GpuCluster host(1);
  host.start_exactly(0, {"job.json"});
  const ChildResult end = host.end_of(0);
  REQUIRE_MESSAGE(end.code == 0, end.err);
  CHECK(contains(end.out, "launch train in GPU mode"));
  for (const int rank : {0, 1})
    CHECK(contains(host.log(0, rank),
                   "Please NOTE: device: " + std::to_string(rank) + ", GPU Compute Capability: "));
  CHECK(testing::greatest_difference(host.read(0, kWeights), weights_on_cpus(2)) < kFar);
  CHECK(host.nothing_left());
}

TEST_CASE("--gpus chooses the GPUs, and names one that the host does not have") {
  if (const auto missing = missing_for_gpus()) LEAVE_OUT(*missing);
  GpuCluster host(1);
  host.start_exactly(0, {"--gpus=1", "job.json", "train.max_steps=1"});
  CHECK(host.end_of(0).code == 0);
  CHECK(contains(host.log(0, 0), "Please NOTE: device: 0,"));  // of those that it sees
  CHECK(nlohmann::json::parse(host.read(0, "log/backup_env.0.json"))["CUDA_VISIBLE_DEVICES"] == "1");
  host.start_exactly(0, {"--gpus=1,2", "job.json"});
  const ChildResult end = host.end_of(0);
  CHECK(end.code == 2);
  CHECK_MESSAGE(contains(end.err, "--gpus lists 2, this machine has the GPUs 0 to 1"), end.err);
}

TEST_CASE("2 hosts with 2 GPUs each end with the weights of 4 ranks on CPUs") {
  if (const auto missing = missing_for_gpus()) LEAVE_OUT(*missing);
  if (const auto missing = Namespaces::missing()) LEAVE_OUT(*missing);
  const Namespaces network(2);
  GpuCluster hosts(2, &network);
  const std::string weights = hosts.weights_after({"job.json"});
  CHECK(hosts.report(0)["ranks"].size() == 4);
  CHECK(contains(hosts.log(1, 1), "Please NOTE: device: 1,"));
  CHECK(testing::greatest_difference(weights, weights_on_cpus(4)) < kFar);
  CHECK(hosts.nothing_left());
}

TEST_CASE(
    "2 hosts with 2 GPUs each train in narrow types, with scaled losses and one all-reduce for all gradients") {
  if (const auto missing = missing_for_gpus()) LEAVE_OUT(*missing);
  if (const auto missing = Namespaces::missing()) LEAVE_OUT(*missing);
  const Namespaces network(2);
  GpuCluster hosts(2, &network);
  const std::string weights =
      hosts.weights_after({"job.json", "strategy.amp=true", "strategy.fuse_all_reduce_ops=true"});
  CHECK(testing::greatest_difference(weights, weights_on_cpus(4)) < 0.02);  // f16 rounds to 1 / 2048
}

TEST_CASE("the first of two GPUs in a pipeline crops, mirrors and normalises the images as a CPU does") {
  if (const auto missing = missing_for_gpus()) LEAVE_OUT(*missing);
  const Words keys = {"strategy.pipeline=true", "strategy.pipeline_configs.accumulate_steps=2",
                      "data.train.augment=crop_flip", "data.train.mean=[30]", "data.train.std=[60]"};
  Words words = {"job.json"};
  words.insert(words.end(), keys.begin(), keys.end());
  GpuCluster host(1);
  host.start_exactly(0, words);
  const ChildResult end = host.end_of(0);
  REQUIRE_MESSAGE(end.code == 0, end.err);
  CHECK(testing::greatest_difference(host.read(0, kWeights), weights_on_cpus(2, keys)) < kFar);
}

TEST_CASE("fleetrun eval gives a model on GPUs the score that it has on CPUs") {
  if (const auto missing = missing_for_gpus()) LEAVE_OUT(*missing);
  GpuCluster host(1);
  host.start_exactly(0, {"job.json"});
  REQUIRE(host.end_of(0).code == 0);
  const Words keys = {"job.json", "model.pretrained=" + kWeights, kTestSet};
  Words on_gpus = {"eval"}, on_cpus = {"eval", "--device=cpu", "--nproc_per_node=2"};
  for (Words* words : {&on_gpus, &on_cpus}) words->insert(words->end(), keys.begin(), keys.end());
  host.start_exactly(0, on_gpus);
  const ChildResult gpus = host.end_of(0);
  REQUIRE_MESSAGE(gpus.code == 0, gpus.err);
  host.start_exactly(0, on_cpus);
  const ChildResult cpus = host.end_of(0);
  REQUIRE_MESSAGE(cpus.code == 0, cpus.err);
  CHECK(gpus.out == cpus.out);
}

pid_t worker_on(const Cluster& host) {
  for (const pid_t pid : host.left_on(0))
    if (read_all("/proc/" + std::to_string(pid) + "/comm") == "fleetrun-worker\n") return pid;
  return 0;
}

TEST_CASE(
    "a restart after the death of a rank on a GPU ends with the same bits as a run that nobody disturbed") {
  if (const auto missing = missing_for_gpus()) LEAVE_OUT(*missing);
  const Words words = {"--max_restart=1",      "--restart_delay=0.01",     "job.json",
                       "checkpoint.dir=saved", "checkpoint.every_steps=5", "train.max_steps=30"};
  GpuCluster undisturbed(1), disturbed(1);
  undisturbed.start_exactly(0, words);
  REQUIRE(undisturbed.end_of(0).code == 0);
  disturbed.start_exactly(0, words);
  REQUIRE(comes_true([&] { return contains(disturbed.log(0, 0), "checkpoint: "); }, within(Cluster::kLimit)));
  ::kill(worker_on(disturbed), SIGKILL);
  const ChildResult end = disturbed.end_of(0);
  REQUIRE_MESSAGE(end.code == 0, end.err);
  CHECK(disturbed.report(0)["earlier_attempts"].size() == 1);
  CHECK(disturbed.read(0, kWeights) == undisturbed.read(0, kWeights));
}

// Pictures of two classes, and keys of a job that trains on them.
Words picture_keys(const TemporaryFolder& folder) {
  for (int i = 0; i < 24; ++i)
    folder.write(std::string(i % 2 == 0 ? "cat/" : "dog/") + std::to_string(i) + ".jpg",
                 runtime::make_jpeg(runtime::gradient_image(1, 40 + 2 * i, 90 - i)));
  return {"data.train=" + nlohmann::json{{"format", "image_folder"},
                                         {"path", folder.path()},
                                         {"channels", 1},
                                         {"image_size", 28},
                                         {"augment", "random_resized_crop"}}
                              .dump()};
}

TEST_CASE(
    "data.use_dali decodes JPEG files on GPUs, and the training ends with the weights of a run on CPUs") {
  if (const auto missing = missing_for_gpus()) LEAVE_OUT(*missing);
  const TemporaryFolder pictures;
  const Words keys = picture_keys(pictures);
  GpuCluster host(1);
  host.set(0, "FLEETRUN_ON_HOST_MEBIBYTES", "2048");
  host.set(0, "FLEETRUN_NVJPEG", ON_HOST_PLUGIN);
  host.start_exactly(0, {"job.json", keys.front(), "data.use_dali=true"});
  const ChildResult end = host.end_of(0);
  REQUIRE_MESSAGE(end.code == 0, end.err);
  CHECK(contains(host.log(0, 0), "images: nvJPEG 13.0.0 decodes JPEG files\n"));
  CHECK_MESSAGE(contains(host.log(0, 1), " JPEG images, the CPU 0\n"), host.log(0, 1));
  CHECK_FALSE(contains(host.log(0, 1), "decoded 0 JPEG images"));
  constexpr double kFarWithRounding =
      0.01;  // where the GPU makes a picture smaller, pixels differ by some grey levels
  CHECK(testing::greatest_difference(host.read(0, kWeights), weights_on_cpus(2, keys)) < kFarWithRounding);
}

TEST_CASE("data.use_dali without nvJPEG names the library, and where to get it") {
  if (const auto missing = missing_for_gpus()) LEAVE_OUT(*missing);
  const TemporaryFolder pictures;
  GpuCluster host(1);
  host.set(0, "FLEETRUN_NVJPEG", "/nowhere/libnvjpeg.so");
  host.start_exactly(0, {"job.json", picture_keys(pictures).front(), "data.use_dali=true"});
  const ChildResult end = host.end_of(0);
  CHECK(end.code == 78);
  CHECK_MESSAGE(
      contains(end.err, "nvJPEG, which decodes images on the GPU, cannot be used: /nowhere/libnvjpeg.so: "),
      end.err);
  CHECK(contains(end.err, "`pip install nvidia-nvjpeg`"));
}

TEST_CASE("the report names a rank whose GPU does not exist, and the run ends") {
  if (const auto missing = missing_for_gpus()) LEAVE_OUT(*missing);
  GpuCluster host(1);
  host.set(0, "FLEETRUN_ON_HOST_DEVICES", "1");
  host.start_exactly(0, {"job.json"});
  const ChildResult end = host.end_of(0);
  CHECK(end.code == 78);
  CHECK(contains(end.err, "fleetrun: rank 1 exited with code 78"));
  CHECK(contains(end.err, "cuda:1 is not there; this process sees 1 CUDA device"));
  CHECK(host.nothing_left());
}

}  // namespace
}  // namespace fleetrun::runs_on_gpus_test
