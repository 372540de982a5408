#include "launch/logs/folder_watch.h"

#include <chrono>
#include <memory>

#include <doctest/doctest.h>

#include "support/temporary_folder.h"

namespace fleetrun::launch::folder_watch_test {
namespace {

using namespace std::chrono_literals;

constexpr auto kTestDeadline = 10s;  // for what happens at once

TEST_CASE("who writes to a file of the folder wakes the watcher, every time") {
  const TemporaryFolder folder;
  folder.write("log", "");
  EventLoop loop;
  std::string seen;
  const FolderWatch watch(loop, folder.path(), 1ms, [&] {
    if (folder.read("log") == seen) return;
    seen = folder.read("log");
    if (seen == "xxx") return loop.stop();
    loop.call_at(Clock::now(), [&] { folder.write("log", seen + "x"); });
  });
  loop.call_at(Clock::now(), [&] { folder.write("log", "x"); });
  loop.call_at(Clock::now() + kTestDeadline, [&] { loop.stop(); });
  loop.run();
  CHECK(seen == "xxx");
}

TEST_CASE("who writes much wakes the watcher once in a pause") {
  const TemporaryFolder folder;
  EventLoop loop;
  int calls = 0;
  const FolderWatch watch(loop, folder.path(), 1h, [&] {
    ++calls;
    for (int i = 0; i < 1000; ++i) folder.write("log", "more");
    loop.call_at(Clock::now(), [&] {  // by then the loop has asked for what is ready
      loop.call_at(Clock::now(), [&] { loop.stop(); });
    });
  });
  loop.call_at(Clock::now(), [&] { folder.write("log", "first"); });
  loop.call_at(Clock::now() + kTestDeadline, [&] { loop.stop(); });
  loop.run();
  CHECK(calls == 1);
}

TEST_CASE("a watch ends without waiting for the kernel") {
  const TemporaryFolder folder;
  EventLoop loop;
  auto best = Clock::duration::max();
  for (int i = 0; i < 50; ++i) {
    const auto start = Clock::now();
    {
      const FolderWatch watch(loop, folder.path(), 1ms, [] {});
    }
    best = std::min(best, Clock::duration(Clock::now() - start));
  }
  CHECK(best < 2ms);  // 0.03 ms; inotify takes 8 to 16
}

TEST_CASE("a folder that cannot be watched is looked at now and then") {
  EventLoop loop;
  int calls = 0;
  const FolderWatch watch(loop, "/no/such", 1ms, [&] {
    if (++calls == 2) loop.stop();
  });
  loop.call_at(Clock::now() + kTestDeadline, [&] { loop.stop(); });
  loop.run();
  CHECK(calls == 2);
}

TEST_CASE("a watch that has ended looks no more") {
  EventLoop loop;
  int calls = 0;
  auto watch = std::make_unique<FolderWatch>(loop, "/no/such", 1ms, [&] { ++calls; });
  loop.call_at(Clock::now(), [&] { watch.reset(); });
  loop.call_at(Clock::now() + 300ms, [&] { loop.stop(); });  // three times the pause without dnotify
  loop.run();
  CHECK(calls == 0);
}

}  // namespace
}  // namespace fleetrun::launch::folder_watch_test
