// W: what happens to ranks of the embedded runtime in the middle of their training.
#include <algorithm>
#include <optional>

#include "e2e/faults/faults.h"

namespace fleetrun::training_fault_test {
namespace {

// Two ranks in the middle of their training.
struct Training {
  explicit Training(const std::string& backend = "auto", const std::string& job = kEndlessJob) {
    launch.folder.write("job.json", job);
    ChildOptions options = launch.options();
    options.environment["FLEETRUN_COMM_BACKEND"] = backend;
    process.emplace(Words{FLEETRUN_BINARY, "--nproc_per_node=2", "--device=cpu", "--hang_timeout=1",
                          "--grace=0.2", "job.json"},
                    options);
    const bool trains =
        comes_true([&] { return contains(launch.folder.read("log/workerlog.1"), "[Epoch 2"); }, within(60s));
    REQUIRE_MESSAGE(trains, launch.folder.read("log/workerlog.1"));
  }

  const Launch launch;
  std::optional<ChildProcess> process;
};

TEST_CASE("W1: a rank of the embedded runtime that is killed is reported with its step and its collectives") {
  Training training;
  ::kill(worker_of(training.launch, 1), SIGKILL);
  const ChildResult result = training.process->wait();
  CHECK(result.code == 137);
  CHECK(contains(result.err, " s, at step "));
  CHECK(contains(result.err, "collective "));
  const auto report = training.launch.report();
  CHECK(report["step"] > 0);
  CHECK(report["collectives"][0]["communicator"] == "world");
  CHECK(report["collectives"][0]["ranks"][1]["latest"].size() == 4);
}

TEST_CASE("W4: a crash of a rank of the embedded runtime leaves a backtrace") {
  Training training;
  ::kill(worker_of(training.launch, 1), SIGSEGV);
  const ChildResult result = training.process->wait();
  CHECK(result.code == 139);
  CHECK(contains(result.err, "rank 1: crashed by SIGSEGV; backtrace:"));
}

TEST_CASE("W5: a rank that is stopped is named with its collective and where the others are") {
  for (const char* backend : {"shm", "gloo"}) {
    CAPTURE(backend);
    Training training(backend);
    ::kill(worker_of(training.launch, 1), SIGSTOP);
    const ChildResult result = training.process->wait();
    CHECK(result.code == 75);
    CHECK(contains(result.err, "    rank 1 is stopped, the others are not\n"));
    CHECK(contains(result.err, "training, step "));

    const auto world = training.launch.report()["collectives"][0];
    CHECK(world["communicator"] == "world");
    const auto& first = world["ranks"][0];
    const auto& stopped = world["ranks"][1];
    CHECK(first["begun"] == first["finished"].get<int>() + 1);  // it waits inside
    CHECK(first["latest"].back()["seconds"].is_null());
    CHECK(first["begun"].get<int>() - stopped["begun"].get<int>() <= 1);
    CHECK(contains(result.err, "in collective " + first["begun"].dump() + ", " +
                                   first["latest"].back()["op"].get<std::string>() + " of "));
    // It was stopped outside of a collective, or inside of the one that the other is in, or of the one before.
    const std::string verdict = world["verdict"];
    CHECK(contains(result.err, "    " + verdict + "\n"));
    const bool same = first["begun"] == stopped["begun"];
    CHECK(contains(verdict, same ? "ranks 0, 1 are in collective " : "rank 1 "));
    CHECK(contains(verdict, "collective " + first["begun"].dump()));
    if (!same) CHECK(world["odd_ranks"] == nlohmann::json{1});

    const auto all = nlohmann::json::parse(training.launch.folder.read("log/collectives.1.json"));
    CHECK(all[0]["begun"] == stopped["begun"]);
    CHECK(all[0]["collectives"].size() == std::min(1024, stopped["begun"].get<int>()));
  }
}

TEST_CASE("W5: collectives are reported from the first one on, those of the search for algorithms included") {
  Training training("auto", R"({
  "model": {"name": "resnet20"},
  "data": {"train": {"format": "synthetic", "samples": 64, "shape": [3, 8, 8], "classes": 4}, "batch_size": 2},
  "train": {"epochs": 100000000, "log_every": 1}
})");
  ::kill(worker_of(training.launch, 1), SIGSTOP);
  CHECK(training.process->wait().code == 75);
  const auto all = nlohmann::json::parse(training.launch.folder.read("log/collectives.0.json"));
  const auto& first = all[0]["collectives"];
  REQUIRE(all[0]["begun"] <= 1024);  // older ones are not kept
  CHECK(first.size() == all[0]["begun"]);
  CHECK(first[0]["op"] == "broadcast");
}

}  // namespace
}  // namespace fleetrun::training_fault_test
