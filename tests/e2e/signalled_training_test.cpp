// Signals to trainings with the real launcher and the real worker: each saves what it should and changes nothing else.
#include <unistd.h>

#include <csignal>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "e2e/saved_training.h"

namespace fleetrun::signalled_training_test {
namespace {

using saved_training::kill_when, saved_training::saved, saved_training::Training;

TEST_CASE("SIGTERM is answered with a last checkpoint, SIGUSR1 with one now") {
  const Training launch("lenet");
  const Words long_job = {"train.epochs=1000000", "checkpoint.every_epochs=0"};
  Words command = {FLEETRUN_BINARY, "--nproc_per_node=2", "job.json"};
  command.insert(command.end(), long_job.begin(), long_job.end());
  ChildProcess child(command, launch.options());
  REQUIRE(
      comes_true([&] { return contains(launch.folder.read("log/workerlog.0"), "[Epoch 1, batch 1]"); }, 60s));
  CHECK(saved(launch).empty());
  child.send(SIGUSR1);
  REQUIRE(comes_true([&] { return saved(launch).size() == 1; }, 60s));
  child.send(SIGTERM);
  const ChildResult result = child.wait();
  CHECK(result.code == 128 + SIGTERM);
  REQUIRE(saved(launch).size() == 2);
  CHECK(contains(launch.folder.read("log/workerlog.0"), "stopped; the checkpoint is complete"));
  const std::string step = saved(launch).back().substr(std::string("000002-step-").size());
  kill_when(launch, "(step " + step + ")", SIGKILL, long_job);
}

TEST_CASE("after SIGTERM the report has the loss of the last step, however seldom it is read") {
  const Training launch("lenet"), whole("lenet");
  kill_when(launch, "[Epoch 1, batch 0]", SIGTERM,
            {"optimizer.learning_rate=0.01", "train.epochs=1000000", "checkpoint.every_epochs=0",
             "train.fetch_every=1000000", "train.log_every=1000000"});
  const nlohmann::json stopped = nlohmann::json::parse(launch.folder.read("log/train.json"));
  const std::int64_t steps = stopped["steps"];
  const ChildResult result = saved_training::train(
      whole, {"optimizer.learning_rate=0.01", "train.epochs=null", fmt::format("train.max_steps={}", steps)});
  REQUIRE_MESSAGE(result.code == 0, result.err);
  CHECK(stopped["loss"] == nlohmann::json::parse(whole.folder.read("log/train.json"))["loss"]);
}

// oneDNN's products of matrices for AVX2 keep numbers where the frame of a handler would lie.
TEST_CASE("signals in the middle of products of matrices change no number") {
  const Training quiet("lenet"), disturbed("lenet");
  const Words words = {FLEETRUN_BINARY,     "--nproc_per_node=2",  "job.json",
                       "train.epochs=null", "train.max_steps=300", "train.log_every=1000",
                       "model.dropout=0.3", "checkpoint.keep=1"};
  const auto with_avx2 = [](const Training& launch) {
    ChildOptions options = launch.options();
    options.environment["ONEDNN_MAX_CPU_ISA"] = "AVX2";
    return options;
  };
  REQUIRE(run_child(words, with_avx2(quiet)).code == 0);
  ChildProcess child(words, with_avx2(disturbed));
  const auto log_has = [&](const char* text) {
    return contains(disturbed.folder.read("log/workerlog.0"), text);
  };
  REQUIRE(comes_true([&] { return log_has("batch 0]"); }, 60s));
  const std::vector<pid_t> workers = workers_in(disturbed.folder);
  int sent = 0;
  while (!log_has("trained ") && !log_has("crashed"))
    for (const pid_t worker : workers) sent += ::kill(worker, SIGUSR1) == 0 ? 1 : 0;
  CHECK(child.wait().code == 0);
  CHECK(sent > 10);
  CHECK(disturbed.folder.read("output/model.safetensors") == quiet.folder.read("output/model.safetensors"));
}

TEST_CASE("SIGTERM to launcher and ranks at once, as a service manager sends it, loses nothing") {
  const Training launch("lenet");
  ChildProcess child({FLEETRUN_BINARY, "--nproc_per_node=2", "job.json", "train.epochs=1000000",
                      "checkpoint.every_epochs=0"},
                     launch.options());
  REQUIRE(
      comes_true([&] { return contains(launch.folder.read("log/workerlog.0"), "[Epoch 1, batch 1]"); }, 60s));
  for (const pid_t worker : workers_in(launch.folder)) ::kill(worker, SIGTERM);
  child.send(SIGTERM);
  CHECK(child.wait().code == 128 + SIGTERM);
  CHECK(saved(launch).size() == 1);
  CHECK(contains(launch.folder.read("log/workerlog.0"), "stopped; the checkpoint is complete"));
}

TEST_CASE(
    "of a training that SIGTERM to one rank stops, that rank is named, and the checkpoint is complete") {
  for (const std::size_t rank : {0, 1, 0, 1}) {
    const Training launch("lenet");
    ChildProcess child({FLEETRUN_BINARY, "--nproc_per_node=2", "job.json", "train.epochs=1000000",
                        "checkpoint.every_epochs=0"},
                       launch.options());
    REQUIRE(comes_true([&] { return contains(launch.folder.read("log/workerlog.0"), "[Epoch 1, batch 1]"); },
                       60s));
    const nlohmann::json run = nlohmann::json::parse(launch.run_words({"ps", "--json"}).out);
    ::kill(run["ranks"][rank]["pid"].get<pid_t>(), SIGTERM);
    CHECK(child.wait().code == 128 + SIGTERM);
    CHECK(launch.report()["first_failed_rank"] == rank);
    CHECK(saved(launch).size() == 1);
  }
}

}  // namespace
}  // namespace fleetrun::signalled_training_test
