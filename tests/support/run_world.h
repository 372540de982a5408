// Runs the ranks of a world as threads and rethrows the first failure.
#pragma once
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include "comm/collective/communicator.h"
#include "support/thread_world.h"

namespace fleetrun::testing {

// The first exception (by time) of several threads.
class FirstFailure {
 public:
  void guard(const std::function<void()>& work) {
    try {
      work();
    } catch (...) {
      const std::lock_guard lock(mutex_);
      if (!failure_) failure_ = std::current_exception();
    }
  }
  void rethrow() const {
    if (failure_) std::rethrow_exception(failure_);
  }

 private:
  std::mutex mutex_;
  std::exception_ptr failure_;
};

// body(rank) for each rank on a thread of its own. The first failure is rethrown when all have ended.
inline void run_ranks(int size, const std::function<void(int rank)>& body) {
  FirstFailure failure;
  std::vector<std::thread> threads;
  threads.reserve(static_cast<std::size_t>(size));
  for (int rank = 0; rank < size; ++rank)
    threads.emplace_back([&, rank] { failure.guard([&] { body(rank); }); });
  for (std::thread& thread : threads) thread.join();
  failure.rethrow();
}

using MakeCommunicator = std::function<std::unique_ptr<comm::Communicator>(int rank)>;

// Each rank makes its communicator on its own thread, uses it, and gives it up when `body` ends or throws; by
// then its failure is noted, so that what the others make of its end comes second.
inline void run_world(int size, const MakeCommunicator& make,
                      const std::function<void(comm::Communicator&)>& body) {
  FirstFailure failure;
  run_ranks(size, [&](int rank) {
    std::unique_ptr<comm::Communicator> communicator;
    failure.guard([&] {
      communicator = make(rank);
      body(*communicator);
    });
  });
  failure.rethrow();
}

inline void run_world(int size, const std::function<void(comm::Communicator&)>& body,
                      comm::ThreadWorldOptions options = {}) {
  auto world = comm::make_thread_world(size, std::move(options));
  run_world(
      size, [&](int rank) { return std::move(world[static_cast<std::size_t>(rank)]); }, body);
}

}  // namespace fleetrun::testing
