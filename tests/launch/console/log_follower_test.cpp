#include "launch/console/log_follower.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <filesystem>
#include <fstream>

#include <doctest/doctest.h>

#include "launch/logs/folder_watch.h"
#include "support/temporary_folder.h"

namespace fleetrun::launch::log_follower_test {
namespace {

using namespace std::chrono_literals;

constexpr auto kTestDeadline = 10s;  // for what happens at once

// A pipe as stdout, the loop, and a log file that grows.
struct Setup {
  Setup() {
    REQUIRE(::pipe2(ends.data(), O_CLOEXEC) == 0);
    read_end.reset(ends[0]);
    write_end.reset(ends[1]);
    ::fcntl(read_end.get(), F_SETFL, O_NONBLOCK);
    folder.write("log", "");
  }
  void append(const std::string& text) const { std::ofstream(folder / "log", std::ios::app) << text; }
  std::string take() const {
    std::string text;
    std::array<char, 65536> buffer;
    for (ssize_t count = 0; (count = ::read(read_end.get(), buffer.data(), buffer.size())) > 0;)
      text.append(buffer.data(), static_cast<std::size_t>(count));
    return text;
  }
  // Runs the loop until `wanted` bytes came out, or the deadline of the test.
  std::string run_until(std::size_t wanted) {
    std::string text;
    loop.watch_readable(read_end.get(), [&] {
      text += take();
      if (text.size() >= wanted) loop.stop();
    });
    loop.call_at(Clock::now() + kTestDeadline, [&] { loop.stop(); });
    loop.run();
    loop.forget(read_end.get());
    return text;
  }

  std::array<int, 2> ends{};
  TemporaryFolder folder;
  UniqueFd read_end, write_end;
  EventLoop loop;
};

const Patience kNoPatience = {0s, [] { return false; }};

TEST_CASE("lines come out as they are written, and only whole ones") {
  Setup setup;
  OutputStream out(setup.loop, setup.write_end.get());
  LogFollower follower(setup.loop, out, setup.folder / "log");
  const FolderWatch watch(setup.loop, setup.folder.path(), 1ms, [&] { follower.look(); });
  setup.loop.call_at(Clock::now(), [&] { setup.append("one\ntwo\nthr"); });
  CHECK(setup.run_until(8) == "one\ntwo\n");
}

TEST_CASE("at the end everything comes out, also a line without an end") {
  Setup setup;
  OutputStream out(setup.loop, setup.write_end.get());
  LogFollower follower(setup.loop, out, setup.folder / "log");
  setup.append("one\nthr");
  CHECK(follower.finish(kNoPatience));
  CHECK(setup.take() == "one\nthr");
}

TEST_CASE("truncated_log.py: a file that somebody empties is copied from its start again") {
  Setup setup;
  OutputStream out(setup.loop, setup.write_end.get());
  setup.append("a first line\nand a sec");
  LogFollower follower(setup.loop, out, setup.folder / "log");
  const FolderWatch watch(setup.loop, setup.folder.path(), 1ms, [&] { follower.look(); });
  std::string text;
  setup.loop.watch_readable(setup.read_end.get(), [&] {
    text += setup.take();
    if (text == "a first line\n") setup.folder.write("log", "new\n");
    if (text.ends_with("new\n")) setup.loop.stop();
  });
  setup.loop.call_at(Clock::now(), [&] { follower.look(); });
  setup.loop.call_at(Clock::now() + kTestDeadline, [&] { setup.loop.stop(); });
  setup.loop.run();
  setup.loop.forget(setup.read_end.get());
  CHECK(text == "a first line\nand a sec\nnew\n");
}

TEST_CASE("a reader that takes nothing is given up, and has lost nothing that it could have read") {
  Setup setup;
  OutputStream out(setup.loop, setup.write_end.get());
  LogFollower follower(setup.loop, out, setup.folder / "log");
  const std::string text = std::string(99, 'x') + "\n";
  for (int i = 0; i < 5000; ++i) setup.append(text);
  CHECK_FALSE(follower.finish(kNoPatience));
  const std::string first = setup.take();
  CHECK(first.size() >= 65536 - 100);
}

TEST_CASE("a reader that keeps up gets no more of a long log after an interruption, and all of a short one") {
  const Patience over = {kTestDeadline, [] { return true; }};
  for (const int lines : {1, 5000}) {
    Setup setup;
    const UniqueFd file(::open((setup.folder / "out").c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
    OutputStream out(setup.loop, file.get());
    LogFollower follower(setup.loop, out, setup.folder / "log");
    const std::string text = std::string(99, 'x') + "\n";
    for (int i = 0; i < lines; ++i) setup.append(text);
    CHECK(follower.finish(over) == (lines == 1));
    const auto shown = std::filesystem::file_size(setup.folder / "out");
    CHECK(shown >= 100);
    CHECK(shown <= 65536 + 100);
  }
}

TEST_CASE("a file larger than any buffer comes out complete and in order") {
  Setup setup;
  std::string all;
  for (int i = 0; i < 40000; ++i) all += "line " + std::to_string(i) + "\n";
  OutputStream out(setup.loop, setup.write_end.get());
  LogFollower follower(setup.loop, out, setup.folder / "log");
  const FolderWatch watch(setup.loop, setup.folder.path(), 1ms, [&] { follower.look(); });
  setup.loop.call_at(Clock::now(), [&] { setup.append(all); });
  CHECK(setup.run_until(all.size()) == all);
}

TEST_CASE("a very long line is passed on in pieces") {
  Setup setup;
  OutputStream out(setup.loop, setup.write_end.get());
  LogFollower follower(setup.loop, out, setup.folder / "log");
  const FolderWatch watch(setup.loop, setup.folder.path(), 1ms, [&] { follower.look(); });
  const std::string line(20000, 'y');
  setup.loop.call_at(Clock::now(), [&] { setup.append(line); });
  CHECK(setup.run_until(line.size()) == line);
}

TEST_CASE("when the reader is gone the rest is dropped, without a signal") {
  ::signal(SIGPIPE, SIG_IGN);  // as the middle process does
  Setup setup;
  OutputStream out(setup.loop, setup.write_end.get());
  LogFollower follower(setup.loop, out, setup.folder / "log");
  setup.read_end.reset();
  setup.append("nobody reads this\n");
  CHECK(follower.finish(kNoPatience));
  CHECK(out.idle());
  ::signal(SIGPIPE, SIG_DFL);
}

TEST_CASE("what stands on the line is taken away before each text") {
  Setup setup;
  int calls = 0;
  OutputStream out(setup.loop, setup.write_end.get());
  out.before_write([&] { ++calls; });
  out.write("a\n");
  out.write("");
  out.write("b\n");
  CHECK(calls == 2);
  CHECK(setup.take() == "a\nb\n");
}

TEST_CASE("a log that a restart moves away is known by its inode, whatever has its name by now") {
  const Setup setup;
  EventLoop loop;
  OutputStream out(loop, setup.write_end.get());
  const LogFollower follower(loop, out, setup.folder / "log");
  std::filesystem::rename(setup.folder / "log", setup.folder / "moved");
  setup.folder.write("log", "of the next attempt");
  struct stat moved {};
  REQUIRE(::stat((setup.folder / "moved").c_str(), &moved) == 0);
  CHECK(follower.inode() == moved.st_ino);
}

}  // namespace
}  // namespace fleetrun::launch::log_follower_test
