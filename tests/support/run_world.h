// Runs the ranks of a world as threads and rethrows the first failure.
#pragma once
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include "comm/communicator.h"
#include "comm/thread_world.h"

namespace fleetrun::testing {

// body(rank) for each rank on a thread of its own. The first exception (by time) is rethrown when all have
// ended.
inline void run_ranks(int size, const std::function<void(int rank)>& body) {
  std::mutex mutex;
  std::exception_ptr first_failure;
  std::vector<std::thread> threads;
  for (int rank = 0; rank < size; ++rank)
    threads.emplace_back([&, rank] {
      try {
        body(rank);
      } catch (...) {
        const std::lock_guard lock(mutex);
        if (!first_failure) first_failure = std::current_exception();
      }
    });
  for (std::thread& thread : threads) thread.join();
  if (first_failure) std::rethrow_exception(first_failure);
}

using MakeCommunicator = std::function<std::unique_ptr<comm::Communicator>(int rank)>;

// Each rank makes its communicator on its own thread, uses it, and gives it up when `body` ends or throws.
inline void run_world(int size, const MakeCommunicator& make,
                      const std::function<void(comm::Communicator&)>& body) {
  run_ranks(size, [&](int rank) {
    const std::unique_ptr<comm::Communicator> communicator = make(rank);
    body(*communicator);
  });
}

inline void run_world(int size, const std::function<void(comm::Communicator&)>& body,
                      comm::ThreadWorldOptions options = {}) {
  auto world = comm::make_thread_world(size, std::move(options));
  run_world(
      size, [&](int rank) { return std::move(world[static_cast<std::size_t>(rank)]); }, body);
}

}  // namespace fleetrun::testing
