#include "runtime/observe/lines.h"

#include <doctest/doctest.h>

namespace fleetrun::runtime::lines_test {
namespace {

TEST_CASE("the lines are those that people's scripts look for") {
  const Score score = {.loss = 4.624976, .acc1 = 0.03125, .acc5 = 0.0625};
  CHECK(epoch_line(0, 5, score) == "[Epoch 0, batch 5] loss: 4.62498, acc1: 0.03125, acc5: 0.06250");
  CHECK(worker_line(1, 12, 7.147933, 520.25) == "worker_index: 1, step12 cost = 7.147933, speed: 520.250000");
  CHECK(test_line(3, score) == "[Epoch 3, test] loss: 4.62498, acc1: 0.03125, acc5: 0.06250");
}

TEST_CASE("acc5 is left out where it says nothing") {
  const Score score = {.loss = 0.5, .acc1 = 0.75};
  CHECK(epoch_line(0, 5, score) == "[Epoch 0, batch 5] loss: 0.50000, acc1: 0.75000");
  CHECK(test_line(3, score) == "[Epoch 3, test] loss: 0.50000, acc1: 0.75000");
}

}  // namespace
}  // namespace fleetrun::runtime::lines_test
