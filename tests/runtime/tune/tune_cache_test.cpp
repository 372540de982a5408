#include "runtime/tune/tune_cache.h"

#include <doctest/doctest.h>

#include <fstream>

#include "base/error/error.h"
#include "base/json/json_reader.h"
#include "support/run_world.h"
#include "support/temporary_folder.h"

namespace fleetrun::runtime::tune_cache_test {
namespace {

constexpr const char* kPlace = "node1, a processor, a library 1.0";

const Effect kEffect = {.name = "all fusions",
                        .settings = {"strategy.a=true"},
                        .ratio = 0.9,
                        .interval = {0.88, 0.93},
                        .turns = 24,
                        .advice = Advice::fuse};
const Tuned kTuned = {.settings = {"strategy.a=true"},
                      .confirmed = kEffect,
                      .tried = {kEffect, kEffect},
                      .explained = {kEffect},
                      .same = {"one"},
                      .left_out = {"two"},
                      .notes = {"a note"},
                      .default_seconds = 0.05,
                      .seconds = 12.5,
                      .made = "2026-11-25 18:00 UTC"};

job::ParsedJob job_with(const std::vector<std::string>& words) {
  return job::parse_job_text(
      R"({"model": {"name": "mlp"}, "data": {"train": {"format": "synthetic", "samples": 64, "shape": [1, 8, 8], "classes": 4}}})",
      "job.json", words);
}

std::string key_with(const std::vector<std::string>& words) {
  return describe({.values = job_with(words).values});
}

TEST_CASE("a result survives its text") {
  CHECK(parse_tuned(read_json(to_json(as_json(kTuned))).root) == kTuned);
  CHECK(parse_tuned(read_json(to_json(as_json(Tuned{}))).root) == Tuned{});
  CHECK_FALSE(parse_tuned(read_json(R"({"settings": 1})").root));
}

TEST_CASE("the next start finds the result of the same job on the same host") {
  const TemporaryFolder folder;
  const TuneCache cache(folder / "new", kPlace);
  CHECK_FALSE(cache.read("job 1"));
  cache.write("job 1", kTuned);
  cache.write("job 2", Tuned{});
  CHECK(TuneCache(folder / "new", kPlace).read("job 1") == kTuned);
  CHECK(cache.read("job 2") == Tuned{});
  CHECK_FALSE(cache.read("job 3"));
  CHECK_FALSE(TuneCache(folder / "new", "another host").read("job 1"));
}

TEST_CASE("a newer result replaces the older one") {
  const TemporaryFolder folder;
  const TuneCache cache(folder.path(), kPlace);
  cache.write("job", Tuned{});
  cache.write("job", kTuned);
  CHECK(cache.read("job") == kTuned);
}

TEST_CASE("a damaged file is an error to read, and the next result makes it anew") {
  const TemporaryFolder folder;
  const TuneCache cache(folder.path(), kPlace);
  std::ofstream(cache.path()) << "{\"place\": 3";
  CHECK_THROWS_AS(cache.read("job"), Error);
  cache.write("job", kTuned);
  CHECK(cache.read("job") == kTuned);
}

TEST_CASE("several processes that write at once lose nothing") {
  const TemporaryFolder folder;
  testing::run_ranks(
      8, [&](int rank) { TuneCache(folder.path(), kPlace).write("job " + std::to_string(rank), kTuned); });
  for (int rank = 0; rank < 8; ++rank)
    CHECK(TuneCache(folder.path(), kPlace).read("job " + std::to_string(rank)) == kTuned);
}

TEST_CASE("the key changes with what a step depends on, and with nothing else") {
  const std::string key = key_with({});
  CHECK(key_with({"train.epochs=7"}) == key);
  CHECK(key_with({"optimizer.learning_rate=0.5"}) == key);
  CHECK(key_with({"output.dir=elsewhere"}) == key);
  CHECK(key_with({"strategy.nccl_comm_num=1"}) != key);  // the user fixed it
  CHECK(key_with({"data.batch_size=64"}) != key);
  CHECK(key_with({"train.global_batch=48"}) != key);
  CHECK(key_with({"model.name=lenet"}) != key);
  CHECK(key_with({"optimizer.name=adam"}) != key);
  CHECK(key_with({"env.TOKEN=a-secret"}) != key);
  CHECK(key_with({"env.TOKEN=a-secret"}) != key_with({"env.TOKEN=another"}));
  CHECK(key_with({"env.TOKEN=a-secret"}).find("a-secret") == std::string::npos);
  const auto with = [&](TuneKey changed) {
    changed.values = job_with({}).values;
    return describe(changed);
  };
  CHECK(with({.values = {}, .ranks = 2}) != key);
  CHECK(with({.values = {}, .ranks_per_node = 2}) != key);
  CHECK(with({.values = {}, .threads = 2}) != key);
  CHECK(with({.values = {}, .amp = true}) != key);
  CHECK(with({.values = {}, .memory = "8"}) != key);
}

}  // namespace
}  // namespace fleetrun::runtime::tune_cache_test
