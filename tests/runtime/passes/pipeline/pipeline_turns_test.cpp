#include "runtime/passes/pipeline/pipeline_turns.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <string>
#include <vector>

#include <fmt/format.h>

namespace fleetrun::runtime::pipeline_turns_test {
namespace {

constexpr auto kOneByOne = job::PipelineSchedule::one_forward_one_backward;
constexpr auto kForwardsFirst = job::PipelineSchedule::forwards_then_backwards;

std::string text_of(const std::vector<Turn>& turns) {
  constexpr const char* kNames[] = {"<x", "F", "x>", "<g", "B", "g>"};
  std::string text;
  for (const Turn& turn : turns)
    text +=
        fmt::format("{}{}{}", text.empty() ? "" : " ", kNames[static_cast<int>(turn.act)], turn.micro_batch);
  return text;
}

TEST_CASE("1F1B: a stage runs ahead by the stages after it, then alternates, then finishes") {
  CHECK(text_of(plan_turns(kOneByOne, {0, 3}, 4)) ==
        "F0 x>0 F1 x>1 F2 x>2 <g0 B0 F3 x>3 <g1 B1 <g2 B2 <g3 B3");
  CHECK(text_of(plan_turns(kOneByOne, {1, 3}, 4)) ==
        "<x0 F0 x>0 <x1 F1 x>1 <g0 B0 <x2 g>0 F2 x>2 <g1 B1 <x3 g>1 F3 x>3 <g2 B2 g>2 <g3 B3 g>3");
  CHECK(text_of(plan_turns(kOneByOne, {2, 3}, 4)) ==
        "<x0 F0 B0 <x1 g>0 F1 B1 <x2 g>1 F2 B2 <x3 g>2 F3 B3 g>3");
  CHECK(text_of(plan_turns(kOneByOne, {0, 1}, 2)) == "F0 B0 F1 B1");
}

TEST_CASE("F-then-B: all forward passes come first") {
  CHECK(text_of(plan_turns(kForwardsFirst, {1, 3}, 2)) == "<x0 F0 x>0 <x1 F1 x>1 <g0 B0 g>0 <g1 B1 g>1");
}

TEST_CASE("an evaluation only goes forward") {
  CHECK(text_of(plan_evaluation({0, 2})) == "F0 x>0");
  CHECK(text_of(plan_evaluation({1, 2})) == "<x0 F0");
}

int most_waiting(const std::vector<Turn>& turns) {
  int waiting = 0, most = 0;
  for (const Turn& turn : turns) {
    if (turn.act == Act::forward) most = std::max(most, ++waiting);
    if (turn.act == Act::backward) --waiting;
  }
  return most;
}

TEST_CASE(
    "with 1F1B at most stages - stage micro-batches wait for their backward pass, with F-then-B all do") {
  for (const int stages : {1, 2, 3, 4, 8})
    for (const int micro_batches : {1, 2, 3, 8, 20})
      for (int stage = 0; stage < stages; ++stage) {
        const PipelinePlace place = {stage, stages};
        CHECK(most_waiting(plan_turns(kOneByOne, place, micro_batches)) ==
              std::min(micro_batches, stages - stage));
        CHECK(most_waiting(plan_turns(kForwardsFirst, place, micro_batches)) == micro_batches);
      }
}

// Every transfer waits until both stages have come to it.
bool finishes(job::PipelineSchedule schedule, int stages, int micro_batches) {
  std::vector<std::vector<Turn>> of_stage;
  for (int stage = 0; stage < stages; ++stage)
    of_stage.push_back(plan_turns(schedule, {stage, stages}, micro_batches));
  std::vector<std::size_t> next(of_stage.size(), 0);
  const auto turn_of = [&](std::size_t stage) -> const Turn* {
    return stage < of_stage.size() && next[stage] < of_stage[stage].size() ? &of_stage[stage][next[stage]]
                                                                           : nullptr;
  };
  const auto meet = [&](std::size_t sender, Act sends, std::size_t receiver, Act receives) {
    const Turn *from = turn_of(sender), *to = turn_of(receiver);
    if (from == nullptr || to == nullptr || from->act != sends || to->act != receives) return false;
    CHECK(from->micro_batch == to->micro_batch);
    ++next[sender];
    ++next[receiver];
    return true;
  };
  for (bool moves = true; moves;) {
    moves = false;
    for (std::size_t stage = 0; stage < of_stage.size(); ++stage) {
      const Turn* turn = turn_of(stage);
      if (turn != nullptr && (turn->act == Act::forward || turn->act == Act::backward)) {
        ++next[stage];
        moves = true;
      }
      moves = meet(stage, Act::send_values, stage + 1, Act::receive_values) || moves;
      moves = meet(stage + 1, Act::send_gradients, stage, Act::receive_gradients) || moves;
    }
  }
  for (std::size_t stage = 0; stage < of_stage.size(); ++stage)
    if (turn_of(stage) != nullptr) return false;
  return true;
}

TEST_CASE("no stage waits in a circle, even when each send lasts until the other stage receives") {
  for (const auto schedule : {kOneByOne, kForwardsFirst})
    for (const int stages : {1, 2, 3, 4, 8})
      for (const int micro_batches : {1, 2, 3, 4, 8, 20}) {
        CAPTURE(stages);
        CAPTURE(micro_batches);
        CHECK(finishes(schedule, stages, micro_batches));
      }
}

}  // namespace
}  // namespace fleetrun::runtime::pipeline_turns_test
