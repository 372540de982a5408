// Runs a test's work in another thread while a control server answers requests in this one.
#pragma once
#include <atomic>
#include <functional>
#include <future>
#include <memory>
#include <utility>

#include <doctest/doctest.h>

#include "launch/serve/control_server.h"
#include "support/temporary_folder.h"

namespace fleetrun::launch {

// Returns what work() returns. Throws what it throws.
template <typename Work>
auto while_answered(EventLoop& loop, const LogFolder& logs, const ControlServer::Answer& answer, Work work,
                    Clock::duration patience = std::chrono::seconds(5)) {
  ControlServer server(loop, logs, answer, patience);
  REQUIRE(server.listens());
  std::atomic<bool> done = false;
  auto result = std::async(std::launch::async, [&] {
    const std::shared_ptr<void> at_end(nullptr, [&](void*) { done = true; });  // also when it throws
    return work();
  });
  const std::function<void()> look = [&] {
    if (done) return loop.stop();
    loop.call_at(Clock::now() + std::chrono::milliseconds(10), look);
  };
  look();
  loop.run();
  server.close();
  return result.get();
}

template <typename Work>
auto while_answered(EventLoop& loop, const TemporaryFolder& folder, const ControlServer::Answer& answer,
                    Work work, Clock::duration patience = std::chrono::seconds(5)) {
  const LogFolder logs(folder.path());
  return while_answered(loop, logs, answer, std::move(work), patience);
}

}  // namespace fleetrun::launch
