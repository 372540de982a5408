// Gives work a deadline. The work may never end: a call that reads a disk of a dead server does not return.
#pragma once
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>

#include "launch/loop/clock.h"

namespace fleetrun::launch {

// The result of `work`; none after `limit`. Then a thread goes on with the work, so `work` owns what it
// uses. It throws nothing.
template <typename Result>
std::optional<Result> within_time(Clock::duration limit, std::function<Result()> work) {
  struct Shared {
    std::mutex mutex;
    std::condition_variable done;
    std::optional<Result> result;
  };
  const auto shared = std::make_shared<Shared>();  // shared with the thread that may go on
  std::thread([shared, work = std::move(work)] {
    Result result = work();
    const std::lock_guard lock(shared->mutex);
    shared->result = std::move(result);
    shared->done.notify_one();
  }).detach();
  std::unique_lock lock(shared->mutex);
  shared->done.wait_for(lock, limit, [&] { return shared->result.has_value(); });
  return std::exchange(shared->result, std::nullopt);
}

}  // namespace fleetrun::launch
