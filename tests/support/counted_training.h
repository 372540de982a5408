// Two ranks that are threads, each with a trainer whose collectives are written down.
#pragma once
#include <vector>

#include "support/counting_communicator.h"
#include "support/small_training.h"

namespace fleetrun::runtime::test {

struct CountedRank {
  int rank;
  Trainer& trainer;
  testing::CallLog& calls;  // empty at first
};

// Calls body(CountedRank) on both ranks, after they have shared their parameters.
template <typename Body>
void run_counted(const job::JobSpec& job, Body&& body) {
  auto world = comm::make_thread_world(2);
  std::vector<testing::CallLog> logs(2);
  testing::run_ranks(2, [&](int rank) {
    const auto at = static_cast<std::size_t>(rank);
    testing::CountingCommunicator communicator("flat", std::move(world[at]), logs[at]);
    const auto device = make_cpu_device();
    Trainer trainer(job, kTrainedFacts, *device, communicator);
    trainer.share_parameters();
    logs[at].take();
    body(CountedRank{rank, trainer, logs[at]});
  });
}

}  // namespace fleetrun::runtime::test
