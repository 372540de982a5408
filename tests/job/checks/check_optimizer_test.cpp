#include "job/checks/check_optimizer.h"

#include <doctest/doctest.h>

#include "job/job_text.h"

namespace fleetrun::job::check_optimizer_test {
namespace {

std::string complaint_about(const std::vector<std::string>& overrides) {
  return complaint(good_job(), overrides);
}

std::vector<std::string> notes_about(const std::vector<std::string>& overrides) {
  return parse(good_job(), overrides).notes;
}

TEST_CASE("strategy.lars is for momentum, strategy.lamb for adam") {
  CHECK(complaint_about({"strategy.lars=true"}) == "");
  CHECK(
      complaint_about({"strategy.lars=true", "optimizer.name=adam"}) ==
      "command line: strategy.lars: found true beside optimizer.name \"adam\", wanted optimizer.name \"momentum\"");
  CHECK(
      complaint_about({"strategy.lars=true", "optimizer.name=lars"}) ==
      "command line: strategy.lars: found true beside optimizer.name \"lars\", wanted optimizer.name \"momentum\"; "
      "without strategy.lars, optimizer.name \"lars\" does the same");
  CHECK(complaint_about({"strategy.lamb=true", "optimizer.name=adam"}) == "");
  CHECK(
      complaint_about({"strategy.lamb=true"}) ==
      "command line: strategy.lamb: found true beside optimizer.name \"momentum\", wanted optimizer.name \"adam\"");
  CHECK(complaint_about({"strategy.lamb=true", "strategy.lars=true"}) ==
        "command line: strategy.lamb: found true beside strategy.lars, wanted one of the two: lars for "
        "optimizer.name \"momentum\", lamb for \"adam\"");
}

TEST_CASE("beside strategy.lars, the optimizer has no decay of its own and no Nesterov form") {
  CHECK(
      complaint_about({"strategy.lars=true", "optimizer.weight_decay=0.5", "optimizer.use_nesterov=true",
                       "optimizer.exclude_from_weight_decay=[\"a\"]"}) ==
      "command line: optimizer.weight_decay: found 0.5 beside strategy.lars, wanted 0: "
      "strategy.lars_configs.lars_weight_decay is the decay\n"
      "command line: optimizer.use_nesterov: found true beside strategy.lars, wanted false: LARS has no such form\n"
      "command line: optimizer.exclude_from_weight_decay: found a list of 1 beside strategy.lars, wanted an empty "
      "one: strategy.lars_configs.exclude_from_weight_decay is the list");
}

TEST_CASE("what sums gradients in half precision twice, and averages that nobody makes, are refused") {
  CHECK(
      complaint_about({"strategy.amp=true", "strategy.fp16_allreduce=true"}) ==
      "command line: strategy.fp16_allreduce: found true beside strategy.amp, wanted false: amp sums the gradients in "
      "half precision already");
  CHECK(complaint_about({"optimizer.ema_evaluate=true"}) ==
        "command line: optimizer.ema_evaluate: found true, wanted optimizer.ema_decay above 0, which is 0");
  CHECK(complaint_about({"optimizer.ema_evaluate=true", "optimizer.ema_decay=0.9"}) == "");
}

TEST_CASE("a limit of gradients belongs to what it limits") {
  CHECK(complaint_about({"optimizer.gradient_clip.by=norm"}) ==
        "command line: optimizer.gradient_clip.limit: found nothing, wanted a number above 0, as "
        "optimizer.gradient_clip.by is \"norm\"");
  CHECK(complaint_about({"optimizer.gradient_clip.by=norm", "optimizer.gradient_clip.limit=1"}) == "");
  CHECK(
      complaint_about({"optimizer.gradient_clip.limit=1"}) ==
      "command line: optimizer.gradient_clip.limit: found 1, wanted nothing: optimizer.gradient_clip.by is \"none\", "
      "which does not use it");
}

TEST_CASE("a number that is 0 or infinite as a 32-bit float is refused") {
  CHECK(
      complaint_about({"optimizer.gradient_clip.by=norm", "optimizer.gradient_clip.limit=1e-50"}) ==
      "command line: optimizer.gradient_clip.limit: found 1e-50, wanted a number above 0 that a 32-bit float can "
      "hold, 1.2e-38 or more");
  CHECK(
      complaint(good_job(R"("optimizer": {"learning_rate_factors": {"fc": 1e300}})")) ==
      "a.json:4:47: optimizer.learning_rate_factors.fc: found 1e300, wanted a number of at least 0 that a 32-bit "
      "float can hold, 3.4e38 or less");
  CHECK(complaint_about({"optimizer.weight_decay=0"}) == "");
}

TEST_CASE("a number below 1 that is 1 as a 32-bit float is refused as 1 is") {
  CHECK(complaint_about({"optimizer.ema_decay=0.99999999"}) ==
        "command line: optimizer.ema_decay: found 0.99999999, which is 1 as a 32-bit float, wanted a number "
        "from 0 to below 1");
  CHECK(
      complaint_about({"optimizer.momentum=0.99999999999"}) ==
      "command line: optimizer.momentum: found 0.99999999999, which is 1 as a 32-bit float, wanted a number "
      "from 0 to below 1");
  CHECK(complaint_about({"optimizer.momentum=1"}) ==
        "command line: optimizer.momentum: found 1, wanted a number from 0 to below 1");
  CHECK(complaint_about({"optimizer.ema_decay=0.99999997", "optimizer.momentum=0.99999994"}) == "");
}

TEST_CASE("factors of the learning rate are numbers by names") {
  const ParsedJob job =
      parse(good_job(R"("optimizer": {"learning_rate_factors": {"fc": 10, "conv1.": 0.5}})"));
  CHECK(job.spec.optimizer.learning_rate_factors ==
        std::map<std::string, double>{{"conv1.", 0.5}, {"fc", 10}});
  CHECK(complaint(good_job(R"("optimizer": {"learning_rate_factors": {"fc": -1}})")) ==
        "a.json:4:47: optimizer.learning_rate_factors.fc: found -1, wanted a number of at least 0");
}

TEST_CASE("hunt 147: LARS without weight decay is noted, because it is momentum") {
  CHECK(notes_about({"optimizer.name=lars"}) ==
        std::vector<std::string>{"optimizer.weight_decay is 0: LARS then updates the parameters as momentum "
                                 "does, and lars_coeff has no effect"});
  CHECK(notes_about({"strategy.lars=true", "strategy.lars_configs.lars_weight_decay=0"}) ==
        std::vector<std::string>{"strategy.lars_configs.lars_weight_decay is 0: LARS then updates the "
                                 "parameters as momentum does, and lars_coeff has no effect"});
  CHECK(notes_about({"optimizer.name=lars", "optimizer.weight_decay=1e-4"}).empty());
  CHECK(notes_about({"strategy.lars=true"}).empty());
  CHECK(notes_about({"strategy.lars_configs.lars_weight_decay=0"}).size() ==
        1);  // that strategy.lars is false
}

TEST_CASE("steps that update nothing are noted") {
  CHECK(
      notes_about({"strategy.gradient_merge=true"}) ==
      std::vector<std::string>{"strategy.gradient_merge has no effect: gradient_merge_configs.k_steps is 1"});
  CHECK(notes_about({"strategy.gradient_merge=true", "strategy.gradient_merge_configs.k_steps=4",
                     "train.max_steps=10"}) ==
        std::vector<std::string>{
            "strategy.gradient_merge: train.max_steps is 10, no multiple of k_steps, which is 4: "
            "the last 2 steps update nothing"});
  CHECK(notes_about({"strategy.gradient_merge=true", "strategy.gradient_merge_configs.k_steps=4",
                     "train.max_steps=8"})
            .empty());
}

TEST_CASE(
    "more steps for an update than the training has are refused, unless a checkpoint keeps the gradients") {
  const std::vector<std::string> short_training = {
      "strategy.gradient_merge=true", "strategy.gradient_merge_configs.k_steps=4", "train.max_steps=3"};
  CHECK(
      complaint_about(short_training) ==
      "command line: strategy.gradient_merge_configs.k_steps: found 4 beside train.max_steps 3, wanted at most 3: "
      "no step would update the parameters, and no checkpoint keeps their gradients");
  std::vector<std::string> kept = short_training;
  kept.push_back("checkpoint.dir=saved");
  CHECK(complaint_about(kept) == "");
}

TEST_CASE("stage 3 of sharding leaves no second copy of the weights to compare") {
  const std::vector<std::string> compared = {"strategy.sharding=true", "train.check_weights_every=5"};
  CHECK(complaint_about(compared) == "");
  CHECK(
      complaint_about(
          {"strategy.sharding=true", "train.check_weights_every=5", "strategy.sharding_configs.stage=3"}) ==
      "command line: train.check_weights_every: found 5 beside strategy.sharding_configs.stage 3, wanted 0: "
      "a rank has only its own parameters; stage 2 keeps all of them on each rank");
}

}  // namespace
}  // namespace fleetrun::job::check_optimizer_test
