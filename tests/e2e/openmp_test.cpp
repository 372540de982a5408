// What the environment says of OpenMP: a training ends as it does without, or is refused with the name of the variable.
#include <map>

#include "e2e/launcher.h"

namespace fleetrun::openmp_test {
namespace {

// Convolutions and batch norms that share their work, on two threads.
const std::string kJob = R"({
  "model": {"name": "resnet20"},
  "data": {"train": {"format": "synthetic", "samples": 32, "shape": [3, 12, 12], "classes": 4}, "batch_size": 8},
  "optimizer": {"name": "momentum", "learning_rate": 0.05},
  "train": {"max_steps": 3, "threads": 2}
})";

ChildResult train_with(const Launch& launch, const std::map<std::string, std::string>& environment,
                       const Words& command = {FLEETRUN_WORKER, "job.json"}) {
  launch.folder.write("job.json", kJob);
  ChildOptions options = launch.options();
  options.environment = environment;
  return run_child(command, options);
}

std::string weights_with(const std::map<std::string, std::string>& environment) {
  const Launch launch;
  const ChildResult result = train_with(launch, environment);
  REQUIRE_MESSAGE(result.code == 0, result.err);
  CHECK_FALSE(contains(result.out, "OMP_THREAD_LIMIT"));
  return launch.folder.read("output/model.safetensors");
}

TEST_CASE("row 1: whatever OpenMP is set to, a team has the threads that its kernels were made for") {
  const std::string plain = weights_with({});
  CHECK_FALSE(plain.empty());
  const std::vector<std::pair<std::string, std::string>> settings = {
      {"OMP_DYNAMIC", "true"},    {"OMP_MAX_ACTIVE_LEVELS", "0"}, {"OMP_NESTED", "true"},
      {"OMP_THREAD_LIMIT", "2"},  {"OMP_NUM_THREADS", "garbage"}, {"OMP_NUM_THREADS", "1"},
      {"OMP_NUM_THREADS", "7,3"}, {"OMP_PROC_BIND", "true"},      {"OMP_PROC_BIND", "spread"},
      {"OMP_PLACES", "threads"},  {"OMP_SCHEDULE", "dynamic,1"},  {"OMP_WAIT_POLICY", "active"},
      {"OMP_STACKSIZE", "512k"},  {"OMP_CANCELLATION", "true"},   {"GOMP_SPINCOUNT", "0"}};
  for (const auto& [name, value] : settings) {
    CAPTURE(name);
    CAPTURE(value);
    CHECK(weights_with({{name, value}}) == plain);
  }
}

TEST_CASE("row 1: fewer threads than asked for by OMP_THREAD_LIMIT are said, and trained with") {
  const Launch launch;
  const ChildResult alone = train_with(launch, {{"OMP_THREAD_LIMIT", "1"}});
  REQUIRE_MESSAGE(alone.code == 0, alone.err);
  CHECK(contains(alone.out,
                 "warning: each op computes with 1 thread instead of 2: OMP_THREAD_LIMIT allows no more\n"));
  const ChildResult launched =
      train_with(launch, {{"OMP_THREAD_LIMIT", "1"}, {"OMP_DYNAMIC", "true"}},
                 {FLEETRUN_BINARY, "--device=cpu", "--nproc_per_node=2", "job.json"});
  REQUIRE_MESSAGE(launched.code == 0, launched.err);
  CHECK(contains(launched.out, "OMP_THREAD_LIMIT allows no more\n"));
}

TEST_CASE("row 1: stacks that oneDNN would overflow are refused by name") {
  for (const char* variable : {"OMP_STACKSIZE", "GOMP_STACKSIZE"}) {
    const Launch launch;
    const ChildResult result = train_with(launch, {{variable, "64k"}});
    CHECK(result.code == 78);
    CHECK(contains(result.err, "compute threads have stacks of 64 KiB, wanted at least 128 KiB\n"));
    CHECK(contains(result.err, "hint: unset OMP_STACKSIZE and GOMP_STACKSIZE"));
  }
}

}  // namespace
}  // namespace fleetrun::openmp_test
