#include "launch/folder_watch.h"

#include <chrono>

#include <doctest/doctest.h>

#include "support/temporary_folder.h"

namespace fleetrun::launch {
namespace {

using namespace std::chrono_literals;

constexpr auto kTestDeadline = 10s;  // for what happens at once

TEST_CASE("who writes to a file of the folder wakes the watcher, every time") {
  const TemporaryFolder folder;
  folder.write("log", "");
  EventLoop loop;
  int calls = 0;
  const FolderWatch watch(loop, folder.path(), [&] {
    if (++calls == 3) return loop.stop();
    loop.call_at(Clock::now(), [&] { folder.write("log", "more"); });
  });
  loop.call_at(Clock::now(), [&] { folder.write("log", "first"); });
  loop.call_at(Clock::now() + kTestDeadline, [&] { loop.stop(); });
  loop.run();
  CHECK(calls == 3);
}

TEST_CASE("a watch ends without waiting for the kernel") {
  const TemporaryFolder folder;
  EventLoop loop;
  auto best = Clock::duration::max();
  for (int i = 0; i < 5; ++i) {
    const auto start = Clock::now();
    {
      const FolderWatch watch(loop, folder.path(), [] {});
    }
    best = std::min(best, Clock::duration(Clock::now() - start));
  }
  CHECK(best < 2ms);  // 0.03 ms; inotify takes 8 to 16
}

TEST_CASE("a folder that cannot be watched is looked at now and then") {
  EventLoop loop;
  int calls = 0;
  const FolderWatch watch(loop, "/no/such", [&] {
    if (++calls == 2) loop.stop();
  });
  loop.call_at(Clock::now() + kTestDeadline, [&] { loop.stop(); });
  loop.run();
  CHECK(calls == 2);
}

}  // namespace
}  // namespace fleetrun::launch
