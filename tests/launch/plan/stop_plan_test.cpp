#include "launch/plan/stop_plan.h"

#include <doctest/doctest.h>

namespace fleetrun::launch::stop_plan_test {
namespace {

const job::CheckpointSpec kNone = {.dir = std::nullopt}, kSaved = {.dir = "/out/saved"};
constexpr const char* kStopped = R"({"stopped": true, "resume": "/my logs/checkpoint/000001-step-18"})";

StopPlan typed(StopPlan plan, const std::vector<std::string>& settings = {"train.epochs=2"}) {
  std::vector<std::string> words = {"--nproc_per_node=2", "my job.json"};
  words.insert(words.end(), settings.begin(), settings.end());
  set_command("fleetrun", words, settings.size(), plan);
  return plan;
}

TEST_CASE("without checkpoint.dir a stop on a terminal of one node saves; elsewhere the user is warned") {
  CHECK(plan_stop(kNone, {.on_terminal = true}).saves_in_logs);
  CHECK(warn_of_stop(plan_stop(kNone, {.on_terminal = true})).empty());
  for (const StopFacts& facts :
       {StopFacts{.on_terminal = false}, StopFacts{.on_terminal = true, .one_node = false}}) {
    CHECK_FALSE(plan_stop(kNone, facts).saves_in_logs);
    CHECK(warn_of_stop(plan_stop(kNone, facts)) ==
          "checkpoint.dir is not set, so a stop will lose the training");
    CHECK_FALSE(plan_stop(kSaved, facts).saves_in_logs);
    CHECK(warn_of_stop(plan_stop(kSaved, facts)).empty());
  }
  CHECK(warn_of_stop(StopPlan()).empty());
}

TEST_CASE("after a stop the command that goes on can be copied") {
  const StopPlan in_logs = typed(plan_stop(kNone, {.on_terminal = true}));
  CHECK(describe_going_on(in_logs, true, kStopped) ==
        "fleetrun: to go on, run\n"
        "    fleetrun --nproc_per_node=2 'my job.json' train.epochs=2 "
        "'checkpoint.resume=/my logs/checkpoint/000001-step-18'\n");
  CHECK(describe_going_on(typed(plan_stop(kSaved, {})), true, R"({"stopped": true})") ==
        "fleetrun: to go on, run\n    fleetrun --nproc_per_node=2 'my job.json' train.epochs=2\n");
}

TEST_CASE("the command that goes on shows no secret, and says so") {
  StopPlan plan = plan_stop(kSaved, {});
  set_command(
      "fleetrun",
      {"--env", "A_TOKEN=one", "job.json", "env.LEVEL=3", "env.A_KEY=two", R"(env={"A_KEY":"three"})"}, 3,
      plan);
  CHECK(describe_going_on(plan, true, R"({"stopped": true})") ==
        "fleetrun: to go on, run this with your secrets in place of ***\n"
        "    fleetrun --env 'A_TOKEN=***' job.json env.LEVEL=3 'env.A_KEY=***' 'env={\"A_KEY\": \"***\"}'\n");
}

TEST_CASE("an earlier checkpoint.resume makes room for the new one") {
  const StopPlan again =
      typed(plan_stop(kNone, {.on_terminal = true}), {"checkpoint.resume=/old", "train.epochs=2"});
  CHECK(describe_going_on(again, true, R"({"stopped": true, "resume": "/new"})") ==
        "fleetrun: to go on, run\n"
        "    fleetrun --nproc_per_node=2 'my job.json' train.epochs=2 checkpoint.resume=/new\n");
}

TEST_CASE("a run that began elsewhere goes on from its own checkpoints once it has one") {
  for (const char* resume : {"/old", "never"}) {
    const std::string setting = std::string("checkpoint.resume=") + resume;
    const StopPlan plan = typed(plan_stop({.dir = "/out/saved", .resume = resume}, {}), {setting});
    CHECK(describe_going_on(plan, true, R"({"steps": 6})", Saved::own_checkpoint) ==
          "fleetrun: to go on, run\n    fleetrun --nproc_per_node=2 'my job.json' checkpoint.resume=auto\n");
    CHECK(describe_going_on(plan, true, "").ends_with(setting + "\n"));
  }
}

TEST_CASE("a stop that saved nothing says so, unless there is an earlier checkpoint") {
  const job::CheckpointSpec resumed = {.dir = std::nullopt, .resume = "/old"};
  CHECK(describe_going_on(typed(plan_stop(resumed, {}), {"checkpoint.resume=/old"}), true, "") ==
        "fleetrun: to go on, run\n    fleetrun --nproc_per_node=2 'my job.json' checkpoint.resume=/old\n");
  CHECK(describe_going_on(typed(plan_stop(kNone, {})), true, "")
            .starts_with("fleetrun: nothing was saved; to start again, run\n    fleetrun "));
  CHECK(describe_going_on(typed(plan_stop(kSaved, {})), true, "").starts_with("fleetrun: to go on, run\n"));
  CHECK(describe_going_on(typed(plan_stop(kSaved, {})), true, "", Saved::nothing)
            .starts_with("fleetrun: nothing was saved; to start again, run\n"));
  const job::CheckpointSpec anew = {.dir = "/out/saved", .resume = "never"};
  CHECK(
      describe_going_on(typed(plan_stop(anew, {})), true, "").starts_with("fleetrun: to start again, run\n"));
}

TEST_CASE("hunt 14: a missing train.json does not hide that a checkpoint was saved") {
  CHECK(describe_going_on(typed(plan_stop(kNone, {.on_terminal = true})), true, "", Saved::own_checkpoint)
            .starts_with("fleetrun: a checkpoint was saved, but fleetrun finds no train.json"));
}

TEST_CASE("hunt 115: a stop after the weights were saved starts nothing again") {
  for (const job::CheckpointSpec& checkpoint : {kNone, kSaved})
    CHECK(describe_going_on(typed(plan_stop(checkpoint, {})), true, R"({"steps": 7})", Saved::weights) ==
          "fleetrun: the training was complete; the line \"weights: ...\" of rank 0 names its weights\n");
  CHECK(describe_going_on(typed(plan_stop(kNone, {})), true, "", Saved::elsewhere).empty());
}

TEST_CASE("other ends, and other programs, have no such command") {
  CHECK(describe_going_on(typed(plan_stop(kSaved, {})), false, "").empty());
  CHECK(describe_going_on(typed(plan_stop(kSaved, {})), false, R"({"steps": 7})").empty());
  CHECK(describe_going_on(typed(plan_stop(kNone, {.on_terminal = true})), false, kStopped)
            .starts_with("fleetrun: to go on"));
  CHECK(describe_going_on(typed(StopPlan()), true, "").empty());
  CHECK(
      describe_going_on(plan_stop(kSaved, {}), true, kStopped).empty());  // another program started this node
}

}  // namespace
}  // namespace fleetrun::launch::stop_plan_test
