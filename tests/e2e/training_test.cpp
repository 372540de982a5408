// Job files on the real launcher and the real worker: training that ends well, and training that does not.
#include <filesystem>
#include <regex>

#include <fmt/format.h>

#include "e2e/launcher.h"
#include "support/slowdown.h"

namespace fleetrun::training_test {
namespace {

const std::string kQuickstart = FLEETRUN_SOURCE_DIR "/configs/quickstart.json";

// A job that would train for an hour: to be interrupted.
const std::string kLongJob = R"({
  "model": {"name": "mlp", "hidden": [64]},
  "data": {"train": {"format": "synthetic", "samples": 256, "shape": [1, 8, 8], "classes": 4}, "batch_size": 16},
  "optimizer": {"name": "sgd", "learning_rate": 0.001},
  "train": {"epochs": 100000000, "log_every": 1}
})";

// A job of one step on image files in the folder `images`.
const std::string kFolderJob = R"({
  "model": {"name": "lenet"},
  "data": {"train": {"format": "image_folder", "path": "images", "image_size": 16}, "batch_size": 2},
  "train": {"max_steps": 1}
})";

std::vector<pid_t> worker_pids(const nlohmann::json& report) {
  std::vector<pid_t> pids;
  for (const auto& rank : report["ranks"]) pids.push_back(rank["pid"]);
  return pids;
}

// The project's own jobs would write beside their files.
std::string output_in(const Launch& launch) { return "output.dir=" + launch.folder / "output"; }

bool trains(const Launch& launch) {
  return comes_true([&] { return contains(launch.folder.read("log/workerlog.1"), "[Epoch 1, batch 1]"); },
                    120s);
}

double test_accuracy_of(const nlohmann::json& report) { return report["train"]["test_accuracy"]; }

TEST_CASE("the quick start's job learns the patterns on two ranks, and its last line sums it up") {
  const Launch launch;
  const ChildResult result =
      launch.run_words({"--nproc_per_node=2", "--device=cpu", kQuickstart, output_in(launch)});
  REQUIRE_MESSAGE(result.code == 0, result.err);
  const auto report = launch.report();
  CHECK(test_accuracy_of(report) > 0.95);
  CHECK(report["train"]["images_per_second"] > 0);
  CHECK(std::regex_search(
      result.out,
      std::regex(
          R"(\[Epoch 3, test\] loss: \d+\.\d{5}, acc1: \d\.\d{5}, acc5: \d\.\d{5}\nweights: .*/output/model\.safetensors\n)"
          R"(data: \d+ images of 6 classes, \d+ images for the test\n)"
          R"(memory per rank: parameters \d+\.\d MiB, gradients \d+\.\d MiB, activations \d+\.\d MiB )"
          R"(\(\d+\.\d MiB saved, [1-9]\d* in-place pairs\)\n)"
          R"(trained 4 epochs, \d+ steps on 2 ranks in \d+\.\d s: \d+\.\d images/s, test accuracy \d\.\d{5}\n)")));
  CHECK(contains(launch.folder.read("log/workerlog.1"), "[Epoch 3, batch 45] loss: "));
}

TEST_CASE("two ranks end with the same weights, bit by bit, whether they share memory or use Gloo") {
  const auto weights_by = [](const std::string& backend) {
    const Launch launch;
    launch.folder.write("job.json", kLongJob);
    ChildOptions options = launch.options();
    options.environment["FLEETRUN_COMM_BACKEND"] = backend;
    const ChildResult result = run_child({FLEETRUN_BINARY, "--nproc_per_node=2", "job.json", "train.epochs=2",
                                          "optimizer.name=momentum", "train.log_every=100"},
                                         options);
    REQUIRE_MESSAGE(result.code == 0, result.err);
    return launch.folder.read("output/model.safetensors");
  };
  const std::string by_shared_memory = weights_by("shm");
  CHECK_FALSE(by_shared_memory.empty());
  CHECK(by_shared_memory == weights_by("gloo"));
}

TEST_CASE("two ranks end with the same weights by several communicators, in groups, waited for or not") {
  const auto weights_with = [](const std::vector<std::string>& strategy, const std::string& told) {
    const Launch launch;
    launch.folder.write("job.json", kLongJob);
    std::vector<std::string> words = {"--nproc_per_node=2", "--device=cpu", "job.json", "train.max_steps=40",
                                      "train.log_every=100"};
    words.insert(words.end(), strategy.begin(), strategy.end());
    const ChildResult result = launch.run_words(words);
    REQUIRE_MESSAGE(result.code == 0, result.err);
    CHECK(contains(launch.folder.read("log/workerlog.0"), "rank 0: all-reduces by " + told + "\n"));
    return launch.folder.read("output/model.safetensors");
  };
  const std::string usual = weights_with({}, "1 communicator, each waited for; num_threads 2");
  CHECK(weights_with({"strategy.nccl_comm_num=3"}, "3 communicators, each waited for; num_threads 4") ==
        usual);
  CHECK(weights_with({"strategy.nccl_comm_num=2", "strategy.sync_nccl_allreduce=false"},
                     "2 communicators, beside the computation") == usual);
  const std::string groups = "strategy.use_hierarchical_allreduce=true";
  CHECK(
      weights_with({groups},
                   "1 communicator, in groups of 2 ranks by their leaders, each waited for; num_threads 2") ==
      usual);
  CHECK(weights_with({groups, "strategy.hierarchical_allreduce_algorithm=scatter", "strategy.nccl_comm_num=2",
                      "strategy.sync_nccl_allreduce=false"},
                     "2 communicators, in groups of 2 ranks by slices, beside the computation") == usual);
}

TEST_CASE("groups that the ranks cannot form end the run with 78 before anything is started") {
  const Launch launch;
  launch.folder.write("job.json", kLongJob);
  const ChildResult result = launch.run_words({"--nproc_per_node=4", "--device=cpu", "job.json",
                                               "strategy.use_hierarchical_allreduce=true",
                                               "strategy.hierarchical_allreduce_inter_nranks=3"});
  CHECK(result.code == 78);
  CHECK(
      result.err ==
      "fleetrun: error: strategy.hierarchical_allreduce_inter_nranks is 3, wanted a divisor of the number of ranks, which is 4\n");
  CHECK_FALSE(std::filesystem::exists(launch.folder / "log"));
}

TEST_CASE("--dump_program writes what is run, as text, picture and kernels") {
  const Launch launch;
  launch.folder.write("job.json", kLongJob);
  const ChildResult result =
      launch.run_words({"--nproc_per_node=2", "--dump_program=some/dump", "job.json", "train.epochs=1"});
  REQUIRE_MESSAGE(result.code == 0, result.err);
  const auto dumped = [&](const std::string& name) { return launch.folder.read("some/dump/" + name); };
  CHECK(contains(dumped("train.txt"), "parameter f1.weight f32[64,64]"));
  CHECK(contains(dumped("train.txt"), "\nall_reduce "));
  CHECK(contains(dumped("train.dot"), "digraph program {\n"));
  CHECK(contains(dumped("train.dot"), "[label=\"sgd\\nf1.weight f32"));
  CHECK(contains(dumped("train.kernels.txt"), "sgd (f1.weight): fleetrun\n"));
  CHECK(contains(dumped("eval.txt"), "\nfetch losses\n"));
  CHECK_FALSE(contains(dumped("eval.txt"), "all_reduce"));
  CHECK(contains(dumped("eval.dot"), "fetch\\nlosses"));
  CHECK(dumped("eval.kernels.txt") != "");
}

TEST_CASE("--dump_passes writes the program after each pass, as text and picture") {
  const Launch launch;
  launch.folder.write("job.json", kLongJob);
  std::filesystem::create_directory(launch.folder / "passes");
  launch.folder.write("passes/98-fuse_bn_act.txt", "");
  launch.folder.write("passes/98-mine", "");
  const ChildResult result =
      launch.run_words({"--nproc_per_node=2", "--dump_passes=passes", "job.json", "train.epochs=1"});
  REQUIRE_MESSAGE(result.code == 0, result.err);
  CHECK_FALSE(contains(launch.folder.read("passes/00-built.txt"), "all_reduce"));
  std::string last;
  for (const auto& entry : std::filesystem::directory_iterator(launch.folder / "passes"))
    if (entry.path().extension() == ".txt") last = std::max(last, entry.path().filename().string());
  CHECK(contains(last, "-assign_communicators.txt"));
  CHECK(contains(launch.folder.read("passes/" + last), "\nall_reduce "));
  CHECK(contains(launch.folder.read("passes/00-built.dot"), "digraph program {\n"));
  CHECK(std::filesystem::exists(launch.folder / "passes/98-mine"));
}

TEST_CASE("--dump_program and --dump_passes of a program that is not a job are refused") {
  const Launch launch;
  for (const std::string flag : {"--dump_program", "--dump_passes"}) {
    const ChildResult result = launch.run({flag + "=dump"}, {"exit", "0"});
    CHECK(result.code == 2);
    CHECK(contains(result.err, flag + " is for job files, and "));
  }
}

TEST_CASE("every rank prints its own steps in the worker format") {
  const Launch launch;
  launch.folder.write("job.json", kLongJob);
  const ChildResult result = launch.run_words(
      {"--nproc_per_node=2", "job.json", "train.print_format=worker", "train.epochs=1", "train.log_every=4"});
  REQUIRE_MESSAGE(result.code == 0, result.err);
  for (const std::string rank : {"0", "1"})
    CHECK(std::regex_search(
        launch.folder.read("log/workerlog." + rank),
        std::regex("worker_index: " + rank + R"(, step4 cost = \d+\.\d{6}, speed: \d+\.\d{6}\n)")));
}

TEST_CASE("a printed step has its own loss, however seldom train.fetch_every reads it") {
  const auto lines_with = [](const std::string& fetch_every) {
    const Launch launch;
    const ChildResult result =
        launch.run_words({"--nproc_per_node=1", "--device=cpu", kQuickstart, output_in(launch),
                          "train.max_steps=12", "train.log_every=5", "train.fetch_every=" + fetch_every});
    REQUIRE_MESSAGE(result.code == 0, result.err);
    const std::string log = launch.folder.read("log/workerlog.0");
    const std::size_t first = log.find("[Epoch 0, batch 0]");
    return log.substr(first, log.find('\n', log.find("[Epoch 0, batch 10]")) - first);
  };
  const std::string lines = lines_with("1");
  CHECK(contains(lines, "[Epoch 0, batch 10] loss: "));
  CHECK(lines_with("20") == lines);
}

TEST_CASE("SIGKILL of one rank in mid-training ends the run with 137 within a second, and names the rank") {
  const Launch launch;
  launch.folder.write("job.json", kLongJob);
  ChildProcess process({FLEETRUN_BINARY, "--nproc_per_node=2", "job.json"}, launch.options());
  REQUIRE(trains(launch));
  const std::vector<pid_t> workers = workers_in(launch.folder);
  REQUIRE(workers.size() == 2);
  pid_t victim = -1;
  for (const pid_t pid : workers) {
    std::ifstream environment("/proc/" + std::to_string(pid) + "/environ");
    const std::string text{std::istreambuf_iterator<char>(environment), {}};
    if (contains(text, "FLEETRUN_RANK=1")) victim = pid;
  }
  REQUIRE(victim > 0);
  const auto start = std::chrono::steady_clock::now();
  ::kill(victim, SIGKILL);
  const ChildResult result = process.wait();
  CHECK(std::chrono::steady_clock::now() - start < 1s * testing::slowness());
  CHECK(result.code == 137);
  CHECK(contains(result.err, "rank 1 was killed by SIGKILL (9), not by fleetrun"));
  CHECK(workers_in(launch.folder).empty());
  CHECK(launch.report()["first_failed_rank"] == 1);
}

TEST_CASE("SIGKILL of the front process leaves no worker of a training after a second") {
  const Launch launch;
  launch.folder.write("job.json", kLongJob);
  ChildProcess process({FLEETRUN_BINARY, "--nproc_per_node=2", "job.json"}, launch.options());
  REQUIRE(trains(launch));
  REQUIRE(workers_in(launch.folder).size() == 2);
  process.send(SIGKILL);
  CHECK(comes_true([&] { return workers_in(launch.folder).empty(); }, 1s));
}

TEST_CASE("Ctrl-C stops a training with 130") {
  const Launch launch;
  launch.folder.write("job.json", kLongJob);
  ChildProcess process({FLEETRUN_BINARY, "--nproc_per_node=2", "job.json"}, launch.options());
  REQUIRE(trains(launch));
  process.send(SIGINT);
  CHECK(process.wait().code == 130);
  CHECK(workers_in(launch.folder).empty());
}

TEST_CASE("hunt 115: a stop while rank 0 measures its profile says that the training was complete") {
  const Launch launch;
  launch.folder.write("job.json", kLongJob);
  ChildProcess process(
      {FLEETRUN_BINARY, "--nproc_per_node=2", "job.json", "train.max_steps=3", "train.profile=100000"},
      launch.options());
  const auto has_saved = [&] {
    return launch.folder.has("log/workerlog.0") &&
           contains(launch.folder.read("log/workerlog.0"), "weights: ");
  };
  REQUIRE(comes_true(has_saved, std::chrono::minutes(1)));
  process.send(SIGTERM);
  const ChildResult result = process.wait();
  CHECK(result.code == 143);
  CHECK_MESSAGE(contains(result.err, "the training was complete"), result.err);
  CHECK_FALSE(contains(result.err, "nothing was saved"));
}

TEST_CASE("a truncated image ends the run with 65 and is named") {
  const Launch launch;
  std::filesystem::create_directories(launch.folder / "images/cat");
  std::filesystem::create_directories(launch.folder / "images/dog");
  // The beginning of a JPEG of 16 by 16 pixels, and nothing after it.
  const std::string header(
      "\xff\xd8\xff\xe0\x00\x10JFIF\x00\x01\x01\x00\x00\x01\x00\x01\x00\x00"
      "\xff\xc0\x00\x0b\x08\x00\x10\x00\x10\x01\x01\x11\x00",
      33);
  launch.folder.write("images/cat/broken.jpg", header);
  launch.folder.write("images/dog/broken.jpg", header);
  launch.folder.write("job.json", kFolderJob);
  const ChildResult result = launch.run_words({"job.json"});
  CHECK(result.code == 65);
  CHECK(contains(result.err, "broken.jpg"));
  for (const pid_t pid : worker_pids(launch.report())) CHECK_FALSE(is_alive(pid));
}

TEST_CASE("row 12: one bad file is one skipped sample, whichever ranks and data sets meet it") {
  const Launch launch;
  const std::string pixel(
      "\x89PNG\r\n\x1a\n\0\0\0\x0dIHDR\0\0\0\x01\0\0\0\x01\x08\0\0\0\0\x3a\x7e\x9b\x55\0\0\0\x0aIDAT\x78\x9c"
      "\x63\x68\0\0\0\x82"
      "\0\x81\x77\xcd\x72\xb6\0\0\0\0IEND\xae\x42\x60\x82",
      67);
  for (const std::string name : {"cat", "dog"}) {
    std::filesystem::create_directories(launch.folder / ("images/" + name));
    for (const std::string file : {"1", "2", "3"})
      launch.folder.write("images/" + name + "/" + file + ".png", pixel);
  }
  launch.folder.write("images/cat/bad.png", "no image");
  launch.folder.write("job.json", kFolderJob);
  const ChildResult result =
      launch.run_words({"--nproc_per_node=2", "job.json", "data.bad_sample=skip", "train.max_steps=12",
                        "data.test.format=image_folder", "data.test.path=images", "data.test.image_size=16"});
  REQUIRE_MESSAGE(result.code == 0, result.err);
  CHECK(contains(result.out, "warning: a sample is skipped: "));
  CHECK(contains(result.out, ", 1 sample skipped"));
  CHECK(launch.report()["train"]["skipped_samples"] == 1);
}

TEST_CASE("a loss that is not a number ends the run with 80 and says at which step") {
  const Launch launch;
  launch.folder.write("job.json", kLongJob);
  const ChildResult result = launch.run_words({"job.json", "optimizer.learning_rate=1e30", "train.epochs=3"});
  CHECK(result.code == 80);
  std::smatch found;
  REQUIRE_MESSAGE(
      std::regex_search(result.err, found,
                        std::regex(R"(rank 0: error: the loss of rank 0 is (?:nan|inf|-nan) at step (\d+))")),
      result.err);

  // It counts as checkpoints do: the last good one is of the step before.
  const std::int64_t lost_at = std::stoll(found[1]);
  REQUIRE(lost_at > 1);
  const ChildResult shorter = launch.run_words({"job.json", "optimizer.learning_rate=1e30",
                                                fmt::format("train.max_steps={}", lost_at),
                                                "checkpoint.dir=saved", "checkpoint.every_steps=1"});
  CHECK(shorter.code == 80);
  CHECK(launch.folder.has(fmt::format("output/saved/{:06}-step-{}", lost_at - 1, lost_at - 1)));
  CHECK_FALSE(launch.folder.has(fmt::format("output/saved/{:06}-step-{}", lost_at, lost_at)));
}

TEST_CASE("numbers that are lost are found at the end of a training that hardly looks at its loss") {
  const Launch launch;
  launch.folder.write("job.json", kLongJob);
  const ChildResult result =
      launch.run_words({"job.json", "optimizer.learning_rate=1e30", "train.max_steps=5",
                        "train.fetch_every=1000", "train.log_every=1000"});
  CHECK(result.code == 80);
  CHECK_FALSE(launch.folder.has("output/model.safetensors"));
}

TEST_CASE("train.json of an earlier run is not taken for this one's") {
  const Launch launch;
  launch.folder.write("job.json", kLongJob);
  CHECK(launch.run_words({"job.json", "train.epochs=1"}).code == 0);
  CHECK(launch.report().contains("train"));
  CHECK(launch.run_words({"job.json", "optimizer.learning_rate=1e30", "train.epochs=3"}).code == 80);
  CHECK_FALSE(launch.report().contains("train"));
}

TEST_CASE("a line break in the path of the job file begins no line of the log") {
  const Launch launch;
  std::filesystem::create_directory(launch.folder / "two\nlines");
  launch.folder.write("two\nlines/job.json", kLongJob);
  const ChildResult result = launch.run_words({"--nproc_per_node=1", "--device=cpu", "two\nlines/job.json",
                                               "train.epochs=1", "checkpoint.dir=checkpoints"});
  CHECK_MESSAGE(result.code == 0, result.err);
  const std::string log = launch.folder.read("log/workerlog.0");
  CHECK_MESSAGE(contains(log, "two?lines/output/model.safetensors"), log);
  CHECK_MESSAGE(!contains(log, "\nlines"), log);
}

TEST_CASE("a batch that cannot fit is refused before the first step, in one error") {
  const Launch launch;
  launch.folder.write("job.json", R"({"model": {"name": "resnet18"},
    "data": {"train": {"format": "synthetic", "samples": 2000000, "shape": [3, 224, 224], "classes": 5}}})");
  const ChildResult result = launch.run_words({"job.json", "data.batch_size=1000000"});
  CHECK(result.code == 78);
  const std::string error = "rank 0: error: data.batch_size is 1000000: a training step needs about ";
  CHECK_MESSAGE(contains(result.err, error), result.err);
  CHECK(contains(result.err, "  hint: about data.batch_size="));
  // On a terminal, and after 2>&1, the error is not told twice.
  const ChildResult together = run_child({"/bin/sh", "-c", "exec \"$@\" 2>&1", "sh", FLEETRUN_BINARY,
                                          "--device=cpu", "job.json", "data.batch_size=1000000"},
                                         launch.options());
  CHECK_MESSAGE(contains(together.out, error), together.out);
  CHECK_MESSAGE(together.out.find(error) == together.out.rfind(error), together.out);
  CHECK(
      contains(together.out, "fleetrun: the error is above; log/workerlog.0 has all that the rank wrote\n"));
}

TEST_CASE("memory that runs out ends a training with 71, not as a bug of ours") {
  if (testing::kSlowdown > 1) return;  // sanitizers need terabytes of address space
  const Launch launch;
  launch.folder.write("job.json", kLongJob);
  const ChildResult result =
      run_child({"/bin/sh", "-c", "ulimit -v 3000000 && exec \"$@\"", "sh", FLEETRUN_BINARY, "--device=cpu",
                 "--nproc_per_node=1", "job.json", "data.train.samples=2147483647"},
                launch.options());
  CHECK(result.code == 71);
  CHECK_MESSAGE(contains(result.err, "rank 0: error: memory ran out\n"), result.err);
}

TEST_CASE("a second training into the same output folder is refused with 73, and the first goes on") {
  const Launch launch;
  launch.folder.write("job.json", kLongJob);
  ChildProcess first({FLEETRUN_BINARY, "--nproc_per_node=2", "--device=cpu", "job.json"}, launch.options());
  REQUIRE(trains(launch));
  const ChildResult second =
      launch.run_words({"--nproc_per_node=1", "--device=cpu", "--log_dir=other", "job.json"});
  CHECK(second.code == 73);
  CHECK_MESSAGE(contains(second.err, "another training that is under way saves its results in "), second.err);
  first.send(SIGTERM);
  CHECK(first.wait().code == 143);
}

}  // namespace
}  // namespace fleetrun::training_test
