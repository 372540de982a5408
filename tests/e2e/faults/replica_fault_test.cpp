// What goes wrong in the weights, and what is different between ranks from the start.
#include <bit>
#include <map>
#include <optional>

#include "e2e/faults/faults.h"
#include "support/other_memory.h"

namespace fleetrun::replica_fault_test {
namespace {

// A number that no other part of the program has, and the same with its lowest bit flipped.
constexpr float kWeight = 0.0123457F;
const float kFlipped = std::bit_cast<float>(std::bit_cast<std::uint32_t>(kWeight) ^ 1U);

// All weights are kWeight and training does not move them.
std::string weights_file() {
  const std::map<std::string, std::vector<int>> shapes = {
      {"f1.bias", {8}}, {"f1.weight", {8, 16}}, {"f2.bias", {4}}, {"f2.weight", {4, 8}}};
  nlohmann::json header;
  std::size_t end = 0;
  for (const auto& [name, shape] : shapes) {
    std::size_t bytes = sizeof(float);
    for (const int size : shape) bytes *= static_cast<std::size_t>(size);
    header[name] = {{"dtype", "F32"}, {"shape", shape}, {"data_offsets", {end, end + bytes}}};
    end += bytes;
  }
  const std::string text = header.dump();
  std::string file;
  for (int shift = 0; shift < 64; shift += 8) file.push_back(static_cast<char>(text.size() >> shift & 0xffU));
  file += text;
  for (std::size_t i = 0; i < end; i += sizeof(float))
    file.append(reinterpret_cast<const char*>(&kWeight), sizeof(float));
  return file;
}

constexpr const char* kStillJob = R"({
  "model": {"name": "mlp", "hidden": [8], "pretrained": "weights.safetensors"},
  "data": {"train": {"format": "synthetic", "samples": 64, "shape": [1, 4, 4], "classes": 4}, "batch_size": 8},
  "optimizer": {"name": "sgd", "learning_rate": 1e-35},
  "train": {"epochs": 100000000, "log_every": 1, "check_weights_every": 20}
})";

TEST_CASE("W18: a bit that flips in one rank's weights ends the run with 81 and that rank's name") {
  for (const int ranks : {3, 2}) {
    const Launch launch;
    launch.folder.write("weights.safetensors", weights_file());
    launch.folder.write("job.json", kStillJob);
    ChildProcess process({FLEETRUN_BINARY, "--nproc_per_node=" + std::to_string(ranks), "--device=cpu",
                          "--grace=0.2", "job.json"},
                         launch.options());
    REQUIRE(
        comes_true([&] { return contains(launch.folder.read("log/workerlog.1"), "[Epoch 2"); }, within(20s)));
    const pid_t worker = worker_of(launch, 1);
    // An update under way may write the old weight back: again until it is seen.
    REQUIRE(comes_true(
        [&] {
          testing::overwrite_floats(worker, kWeight, 4, kFlipped);
          return launch.folder.has("log/report.json");
        },
        within(20s)));
    const ChildResult result = process.wait();
    CHECK(result.code == 81);
    CHECK(contains(result.err, "error: after step "));
    const std::string wanted =
        ranks == 3 ? "the weights of rank 1 differ from those of the other ranks\n"
                   : "the weights of the ranks differ, and no majority tells whose are wrong: rank ";
    CHECK_MESSAGE(contains(result.err, wanted), result.err);
    CHECK(launch.report()["exit_code"] == 81);
  }
}

TEST_CASE("P10: a rank whose job differs is refused with 76 and the line that differs") {
  const Launch launch;  // a launcher with a worker program of its own beside it
  std::filesystem::copy_file(FLEETRUN_BINARY, launch.folder / "fleetrun");
  launch.folder.write(
      "fleetrun-worker",
      std::string("#!/bin/sh\n[ $FLEETRUN_RANK = 1 ] && set -- \"$@\" 'model.hidden=[9]'\nexec ") +
          FLEETRUN_WORKER + " \"$@\"\n");
  std::filesystem::permissions(launch.folder / "fleetrun-worker", std::filesystem::perms::owner_all);
  launch.folder.write("job.json", kEndlessJob);
  const ChildResult result =
      run_child({launch.folder / "fleetrun", "--nproc_per_node=2", "--device=cpu", "--grace=0.2", "job.json"},
                launch.options());
  CHECK(result.code == 76);
  CHECK(contains(result.err, "ranks differ in program line "));
  CHECK(contains(result.err, ": rank 0 has "));
  CHECK(contains(result.err, ", rank 1 has "));
}

}  // namespace
}  // namespace fleetrun::replica_fault_test
