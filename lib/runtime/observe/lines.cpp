#include "runtime/observe/lines.h"

#include <fmt/format.h>

namespace fleetrun::runtime {

std::string epoch_line(int epoch, int batch, const Score& score) {
  return fmt::format("[Epoch {}, batch {}] loss: {:.5f}, acc1: {:.5f}, acc5: {:.5f}", epoch, batch,
                     score.loss, score.acc1, score.acc5);
}

std::string worker_line(int rank, long step, double cost, double speed) {
  return fmt::format("worker_index: {}, step{} cost = {:f}, speed: {:f}", rank, step, cost, speed);
}

std::string test_line(int epoch, const Score& score) {
  return fmt::format("[Epoch {}, test] loss: {:.5f}, acc1: {:.5f}, acc5: {:.5f}", epoch, score.loss,
                     score.acc1, score.acc5);
}

}  // namespace fleetrun::runtime
