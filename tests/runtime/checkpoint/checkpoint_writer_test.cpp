#include "runtime/checkpoint/checkpoint_writer.h"

#include <doctest/doctest.h>

#include "support/temporary_folder.h"

namespace fleetrun::runtime::checkpoint_writer_test {
namespace {

using namespace std::chrono_literals;

Snapshot snapshot(std::int64_t steps) {
  Snapshot made = {.state = {.steps = steps, .model = "mlp", .optimizer = "sgd"}};
  made.files["model.safetensors"]["fc1.weight"] = {{1}, {static_cast<float>(steps)}};
  return made;
}

TEST_CASE("checkpoints are written in order, each is reported once, and the last is there at the end") {
  const TemporaryFolder home;
  CheckpointFolder folder(home.path(), 10);
  {
    CheckpointWriter writer(folder);
    for (const int steps : {1, 2, 3}) writer.write(snapshot(steps));
    REQUIRE(writer.wait_until_idle(60s));
    const std::vector<SaveResult> results = writer.take_results();
    REQUIRE(results.size() == 3);
    CHECK(results[2].state.steps == 3);
    CHECK(results[2].path == home / "000003-step-3");
    CHECK(writer.take_results().empty());
    writer.write(snapshot(4));
  }
  CHECK(home.has("000004-step-4/manifest.json"));
}

TEST_CASE("a save that fails is a result with its problem, and the next one is tried") {
  const TemporaryFolder home;
  CheckpointFolder folder(home.path(), 10);
  CheckpointWriter writer(folder);
  Snapshot broken = snapshot(1);
  broken.files["no/such/folder"] = {};
  writer.write(std::move(broken));
  writer.write(snapshot(2));
  REQUIRE(writer.wait_until_idle(60s));
  const std::vector<SaveResult> results = writer.take_results();
  REQUIRE(results.size() == 2);
  REQUIRE(results[0].problem);
  CHECK(results[0].problem->message().find("no/such/folder") != std::string::npos);
  CHECK(results[0].path.empty());
  CHECK_FALSE(results[1].problem);
  CHECK(home.has("000001-step-2"));
}

}  // namespace
}  // namespace fleetrun::runtime::checkpoint_writer_test
