#include "runtime/observe/lines.h"

#include <fmt/format.h>

namespace fleetrun::runtime {

namespace {

std::string describe(const Score& score) {
  const std::string acc5 = score.acc5 ? fmt::format(", acc5: {:.5f}", *score.acc5) : "";
  return fmt::format("loss: {:.5f}, acc1: {:.5f}{}", score.loss, score.acc1, acc5);
}

}  // namespace

std::string epoch_line(int epoch, int batch, const Score& score) {
  return fmt::format("[Epoch {}, batch {}] {}", epoch, batch, describe(score));
}

std::string worker_line(int rank, long step, double cost, double speed) {
  return fmt::format("worker_index: {}, step{} cost = {:f}, speed: {:f}", rank, step, cost, speed);
}

std::string test_line(int epoch, const Score& score) {
  return fmt::format("[Epoch {}, test] {}", epoch, describe(score));
}

}  // namespace fleetrun::runtime
