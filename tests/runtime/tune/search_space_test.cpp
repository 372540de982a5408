#include "runtime/tune/search_space.h"

#include <doctest/doctest.h>

#include <algorithm>

#include "job/parse_job.h"

namespace fleetrun::runtime::search_space_test {
namespace {

const SpaceFacts kTwoRanks = {
    .ranks = 2, .ranks_per_node = 2, .nodes = 1, .gradient_bytes = 102 << 20, .batch = 8};

const Candidate* find(const std::vector<Candidate>& space, const std::string& name) {
  const auto found = std::find_if(space.begin(), space.end(),
                                  [&](const Candidate& candidate) { return candidate.name == name; });
  return found == space.end() ? nullptr : &*found;
}

bool has_key(const std::vector<Candidate>& space, const std::string& key) {
  return std::any_of(space.begin(), space.end(), [&](const Candidate& candidate) {
    return std::any_of(candidate.settings.begin(), candidate.settings.end(),
                       [&](const std::string& setting) { return key_of(setting) == key; });
  });
}

TEST_CASE("every candidate is a job that can be read") {
  const std::string job =
      R"({"model": {"name": "mlp"}, "data": {"train": {"format": "synthetic", "samples": 64, "shape": [1, 8, 8], "classes": 4}}})";
  SpaceFacts facts = kTwoRanks;
  facts.ranks = facts.ranks_per_node = 4;
  facts.amp = facts.memory = true;
  const std::vector<Candidate> space = search_space(facts);
  CHECK(space.size() > 20);
  for (const Candidate& candidate : space) {
    CHECK_NOTHROW_MESSAGE(job::parse_job_text(job, "job.json", candidate.settings), candidate.name);
    CHECK(std::is_sorted(candidate.settings.begin(), candidate.settings.end()));
  }
}

TEST_CASE("groups of a tenth of all gradient bytes have that size, and as many gradients as fit") {
  const std::vector<Candidate> space = search_space(kTwoRanks);
  const Candidate* tenth = find(space, "groups of a tenth of all gradients");
  REQUIRE(tenth != nullptr);
  CHECK(tenth->settings == std::vector<std::string>{"strategy.fuse_grad_size_in_MB=10.2",
                                                    "strategy.fuse_grad_size_in_TFLOPS=0"});
}

TEST_CASE("one rank has no all-reduces to tune") {
  const std::vector<Candidate> space = search_space({.gradient_bytes = 1 << 20});
  CHECK_FALSE(has_key(space, "strategy.nccl_comm_num"));
  CHECK_FALSE(has_key(space, "strategy.fuse_grad_size_in_MB"));
  CHECK(has_key(space, "strategy.execution_strategy.num_threads"));
}

TEST_CASE("ranks of several nodes may sum inside the nodes first") {
  const std::vector<Candidate> space =
      search_space({.ranks = 8, .ranks_per_node = 4, .nodes = 2, .gradient_bytes = 1 << 20});
  CHECK(find(space, "groups of 4 ranks by leader") != nullptr);
  CHECK(find(space, "groups of 4 ranks by scatter") != nullptr);
  CHECK_FALSE(has_key(search_space(kTwoRanks), "strategy.use_hierarchical_allreduce"));
}

TEST_CASE("what changes the results is tried only if the user allows it") {
  CHECK_FALSE(has_key(search_space(kTwoRanks), "strategy.amp"));
  CHECK_FALSE(has_key(search_space(kTwoRanks), "strategy.fp16_allreduce"));
  CHECK_FALSE(has_key(search_space(kTwoRanks), "data.batch_size"));
  SpaceFacts facts = kTwoRanks;
  facts.amp = facts.memory = true;
  CHECK(has_key(search_space(facts), "strategy.amp"));
  CHECK(has_key(search_space(facts), "strategy.fp16_allreduce"));
  facts.narrow = false;  // no rank could train with it
  CHECK_FALSE(has_key(search_space(facts), "strategy.amp"));
  CHECK(has_key(search_space(facts), "strategy.fp16_allreduce"));
  CHECK(find(search_space(facts), "batch size 16 with recompute") != nullptr);
}

TEST_CASE("keys that the job sets stay as they are") {
  SpaceFacts facts = kTwoRanks;
  facts.fixed = {"strategy.build_strategy.fuse_bn_act_ops", "strategy.nccl_comm_num"};
  const std::vector<Candidate> space = search_space(facts);
  CHECK_FALSE(has_key(space, "strategy.nccl_comm_num"));
  CHECK_FALSE(has_key(space, "strategy.build_strategy.fuse_bn_act_ops"));
  REQUIRE(find(space, "all fusions") != nullptr);  // of the others
}

TEST_CASE("a job that sets its batch, or that of all ranks, keeps it, and may still recompute") {
  for (const char* key : {"data.batch_size", "train.global_batch"}) {
    CAPTURE(key);
    SpaceFacts facts = kTwoRanks;
    facts.memory = true;
    facts.fixed = {key};
    const std::vector<Candidate> space = search_space(facts);
    CHECK_FALSE(has_key(space, "data.batch_size"));
    CHECK_FALSE(has_key(space, "train.global_batch"));
    CHECK(find(space, "recompute") != nullptr);
  }
}

TEST_CASE("two changes are one when they do not contradict each other") {
  const Candidate a = {"a", {"strategy.amp=true", "strategy.nccl_comm_num=2"}};
  const Candidate b = {"b", {"strategy.nccl_comm_num=2", "strategy.recompute=true"}};
  const std::optional<Candidate> both = combine(a, b);
  REQUIRE(both);
  CHECK(both->name == "a + b");
  CHECK(both->settings ==
        std::vector<std::string>{"strategy.amp=true", "strategy.nccl_comm_num=2", "strategy.recompute=true"});
  CHECK_FALSE(combine(a, {"c", {"strategy.nccl_comm_num=1"}}));
  CHECK_FALSE(combine(a, {"d", {"strategy.amp=true"}}));  // nothing new
  CHECK(without(a, 0).settings == std::vector<std::string>{"strategy.nccl_comm_num=2"});
}

}  // namespace
}  // namespace fleetrun::runtime::search_space_test
