// A rank that is slower than the others: the line about it, `fleetrun ps`, report.json and the metrics.
#include "e2e/launcher.h"

namespace fleetrun::straggler_test {
namespace {

using nlohmann::json;

const std::string kJob = R"({
  "model": {"name": "lenet"},
  "data": {"train": {"format": "synthetic", "samples": 512, "shape": [3, 32, 32], "classes": 10}, "batch_size": 32},
  "optimizer": {"name": "momentum", "learning_rate": 0.01},
  "train": {"max_steps": 10000000, "log_every": 1000}
})";

// Four ranks that train until they are stopped.
struct Training {
  Training() {
    REQUIRE(comes_true([&] { return contains(launch.folder.read("log/workerlog.0"), "[Epoch 0, batch 0]"); },
                       120s));
  }
  std::string err() const { return launch.folder.read("err"); }
  ChildResult ps(const Words& flags = {}) const {
    Words words = {FLEETRUN_BINARY, "ps"};
    words.insert(words.end(), flags.begin(), flags.end());
    return run_child(words, launch.options());
  }
  json ps_json() const { return json::parse(ps({"--json"}).out); }
  json end() {
    process.send(SIGTERM);
    process.wait();
    return launch.report()["stragglers"];
  }
  static Words command(const Launch& launch) {
    launch.folder.write("job.json", kJob);
    return {"/bin/sh", "-c",
            std::string("exec ") + FLEETRUN_BINARY +
                " --nproc_per_node=4 --device=cpu --straggler_after=4 "
                "--metrics_file=fleetrun.prom job.json 2>err"};
  }

  const Launch launch;
  ChildProcess process{command(launch), launch.options()};
};

TEST_CASE("a rank that is stopped half of the time is said to be slow, everywhere and once") {
  Training training;
  const std::string pid = std::to_string(training.ps_json()["ranks"].at(2)["pid"].get<int>());
  ChildProcess brake(
      {"/bin/sh", "-c",
       "while kill -STOP " + pid + "; do sleep 0.05; kill -CONT " + pid + "; sleep 0.02; done"});
  const std::string line = "rank 2 on ";
  REQUIRE(comes_true([&] { return contains(training.err(), line); }, 120s));
  const std::string shown = training.ps().out;
  CHECK_MESSAGE(contains(shown, "\nrank 2 on "), shown);
  CHECK_MESSAGE(contains(shown, " is slow in compute: each step takes it "), shown);
  const json stragglers = training.end();
  brake.wait();
  CHECK_MESSAGE(training.err().find(line) == training.err().rfind(line), training.err());
  REQUIRE(stragglers.size() == 1);
  CHECK(stragglers[0]["rank"] == 2);
  CHECK(stragglers[0]["phase"] == "compute");
  CHECK(stragglers[0]["factor"] > 1.2);
  CHECK(contains(training.launch.folder.read("fleetrun.prom"),
                 "\nfleetrun_straggler_ratio{rank=\"2\",host=\""));
}

TEST_CASE("ranks that are equally fast are not said to be slow") {
  Training training;
  // More than twice --straggler_after.
  CHECK(comes_true([&] { return training.ps_json()["seconds"] > 10; }, 120s));
  CHECK_MESSAGE(training.end().empty(), training.err());
}

}  // namespace
}  // namespace fleetrun::straggler_test
