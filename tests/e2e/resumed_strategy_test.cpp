// Trainings that go on with another strategy, or in another type, than the one that was saved.
#include <fstream>
#include <regex>

#include <fmt/format.h>

#include "e2e/saved_training.h"
#include "support/leave_out.h"

namespace fleetrun::resumed_strategy_test {
namespace {

using saved_training::kill_when, saved_training::newest, saved_training::train, saved_training::Training;

TEST_CASE("merged gradients of another scale are left out of a training that goes on, and it says so") {
  const Training launch("lenet");
  const Words merging = {"strategy.gradient_merge=true", "strategy.gradient_merge_configs.k_steps=4",
                         "train.epochs=null"};
  Words first = merging, second = merging;
  first.insert(first.end(), {"train.max_steps=6", "strategy.build_strategy.gradient_scale_strategy=One"});
  second.emplace_back("train.max_steps=9");
  REQUIRE(train(launch, first).code == 0);
  const ChildResult more = train(launch, second);
  REQUIRE_MESSAGE(more.code == 0, more.err);
  CHECK(
      contains(more.out,
               "the merged gradients of 2 batches are left out: the scaling of gradients is \"loss scale 1, "
               "CoeffNumDevice\" and was \"loss scale 1, One\"; the next update comes after 4 batches"));
  CHECK(contains(newest(launch).at("manifest.json"), "\"batches\": 3"));
}

bool has_bf16() {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);)
    if (contains(line, " avx512_bf16")) return true;
  return false;
}

// Trains six steps with the words of `both` and `before`, and goes on with those of `both` and `after`.
struct Change {
  std::vector<Words> both, before, after;
  const char* says;
};

void check_goes_on(const Change& change) {
  const Training launch("mlp");
  const auto words_of = [&](const std::vector<Words>& own, const char* steps) {
    Words all = {steps};
    for (const auto* list : {&change.both, &own})
      for (const Words& words : *list) all.insert(all.end(), words.begin(), words.end());
    return all;
  };
  const ChildResult first = train(launch, words_of(change.before, "train.max_steps=6"));
  REQUIRE_MESSAGE(first.code == 0, first.err);
  const ChildResult more = train(launch, words_of(change.after, "train.max_steps=9"));
  REQUIRE_MESSAGE(more.code == 0, more.err);
  CHECK_MESSAGE(contains(more.out, change.says), more.out);
}

const Words kLocal = {"strategy.localsgd=true", "strategy.localsgd_configs.k_steps=4", "train.epochs=null"};

TEST_CASE("hunt 8: what the saved training did not have for each rank does not keep it from going on") {
  const Words merging = {"strategy.gradient_merge=true", "strategy.gradient_merge_configs.k_steps=4",
                         "train.epochs=null"};
  const Words sgd = {"optimizer.name=sgd", "optimizer.momentum=null", "optimizer.learning_rate=0.01"};
  const Words frozen = {R"(model.freeze=["f1"])"};
  check_goes_on({{kLocal, sgd}, {frozen}, {}, ""});
  check_goes_on({{merging, sgd}, {frozen}, {}, "they are not of all weights that this training changes"});
}

TEST_CASE(
    "hunt 8: a training with a copy of the weights on each rank goes on with a loss scale that it did not have") {
  if (!has_bf16()) LEAVE_OUT("this processor computes nothing in bf16");
  check_goes_on({{kLocal}, {}, {{"strategy.amp=true"}}, "the checkpoint has no loss scale"});
}

TEST_CASE(
    "hunt 12: weights that a training with localsgd freezes when it goes on are the same on all ranks") {
  const Training launch("mlp");
  Words words = {"strategy.localsgd=true",     "strategy.localsgd_configs.k_steps=4",
                 "train.epochs=null",          "optimizer.name=sgd",
                 "optimizer.momentum=null",    "optimizer.learning_rate=0.01",
                 "checkpoint.every_steps=100", "train.max_steps=6"};
  REQUIRE(train(launch, words).code == 0);
  CHECK(contains(newest(launch).at("rank_states.safetensors"), "\"f1.weight.1\""));
  words.back() = "train.max_steps=10";
  words.emplace_back(R"(model.freeze=["f1"])");
  const ChildResult more = train(launch, words);
  REQUIRE_MESSAGE(more.code == 0, more.err);
  CHECK_FALSE(contains(newest(launch).at("rank_states.safetensors"), "\"f1.weight.1\""));
  CHECK(contains(newest(launch).at("rank_states.safetensors"), "\"f2.weight.1\""));
}

TEST_CASE(
    "a training in bf16 that is killed and started again keeps its loss scale, and ends bit by bit the same") {
  if (!has_bf16()) LEAVE_OUT("this processor computes nothing in bf16");
  const Training whole("lenet"), killed("lenet");
  const Words amp = {"strategy.amp=true", "strategy.amp_configs.incr_every_n_steps=7"};
  REQUIRE(train(whole, amp).code == 0);
  kill_when(killed, "-step-18", SIGKILL, amp);
  const ChildResult again = train(killed, amp);
  REQUIRE_MESSAGE(again.code == 0, again.err);
  CHECK(contains(again.out, "resuming from "));
  CHECK_FALSE(contains(again.out, "loss scale:"));
  CHECK(newest(killed) == newest(whole));
}

TEST_CASE(
    "a training that goes on with fewer steps to a larger loss scale than it has behind it gets there") {
  if (!has_bf16()) LEAVE_OUT("this processor computes nothing in bf16");
  const Training launch("lenet");
  REQUIRE(train(launch, {"train.max_steps=6", "strategy.amp=true"}).code == 0);
  const ChildResult more =
      train(launch, {"train.max_steps=9", "strategy.amp=true", "strategy.amp_configs.incr_every_n_steps=4"});
  REQUIRE_MESSAGE(more.code == 0, more.err);
  CHECK(contains(more.out, "the loss scale is 65536 after step 7, was 32768"));
}

TEST_CASE(
    "a training goes on in bf16 from a checkpoint in f32, and the other way round, and says what becomes of the scale") {
  if (!has_bf16()) LEAVE_OUT("this processor computes nothing in bf16");
  const Training launch("lenet");
  REQUIRE(train(launch, {"train.epochs=1"}).code == 0);
  const ChildResult narrow = train(launch, {"train.epochs=2", "strategy.amp=true"});
  REQUIRE_MESSAGE(narrow.code == 0, narrow.err);
  CHECK(contains(narrow.out, "the checkpoint has no loss scale: it starts as strategy.amp_configs says"));
  const ChildResult wide = train(launch, {"train.epochs=3"});
  REQUIRE_MESSAGE(wide.code == 0, wide.err);
  CHECK(contains(wide.out, "the checkpoint's loss scale is left out"));
  CHECK(contains(wide.out, "[Epoch 2, batch 0]"));
}

TEST_CASE(
    "a pipeline that is killed and started again ends bit by bit the same, also in another number of stages") {
  const Training whole("resnet20"), killed("resnet20");
  const Words pipeline = {"strategy.pipeline=true", "strategy.pipeline_configs.accumulate_steps=4"};
  REQUIRE(train(whole, pipeline).code == 0);
  kill_when(killed, "-step-36", SIGKILL, pipeline);
  const ChildResult again = train(killed, pipeline, 3);
  REQUIRE_MESSAGE(again.code == 0, again.err);
  CHECK(contains(again.out, "resuming from "));
  CHECK(newest(killed) == newest(whole));
  CHECK(killed.folder.read("output/model.safetensors") == whole.folder.read("output/model.safetensors"));
}

}  // namespace
}  // namespace fleetrun::resumed_strategy_test
