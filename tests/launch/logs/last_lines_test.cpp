#include "launch/logs/last_lines.h"

#include <cerrno>

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "base/text/printable.h"
#include "base/text/utf8.h"
#include "support/temporary_folder.h"

namespace fleetrun::launch::last_lines_test {
namespace {

using Words = std::vector<std::string>;

TEST_CASE("the last lines of a log are found, whatever is in it") {
  const TemporaryFolder folder;
  folder.write("log", "one\ntwo\n\nthree");
  CHECK(read_last_lines(folder / "log", 3) == Words{"two", "", "three"});
  CHECK(read_last_lines(folder / "log", 9) == Words{"one", "two", "", "three"});
  folder.write("log", "a\x1b[31mred\tx\r\n");
  CHECK(read_last_lines(folder / "log", 1) == Words{"ared\tx"});
  folder.write("log", "\n");
  CHECK(read_last_lines(folder / "log", 5).empty());
  folder.write("log", "");
  CHECK(read_last_lines(folder / "log", 5).empty());
  CHECK(read_last_lines(folder / "missing", 5).empty());
  folder.write("log", std::string(100000, 'x') + "\nend\n");
  CHECK(read_last_lines(folder / "log", 1) == Words{"end"});
}

TEST_CASE("hunt 19: of a row that nested progress bars have redrawn, the last lines have one state") {
  std::string log = "start\n";
  for (int batch = 0; batch < 100; ++batch) log += "\rbatch " + std::to_string(batch) + "\x1b[A\n";
  CHECK(last_lines(log + "\nTraceback\nKeyError: 1\n", 4) ==
        std::vector<std::string>{"batch 99", "", "Traceback", "KeyError: 1"});
  CHECK(last_lines(log, 30) == std::vector<std::string>{"start", "batch 99"});
}

TEST_CASE(
    "of a backtrace that is longer than the last lines, the headline and the innermost frames are shown") {
  const auto log_with_frames = [](int frames) {
    std::string log = "[Epoch 0, batch 0] loss: 1.42579\nrank 1: crashed by SIGSEGV; backtrace:\n";
    for (int i = 0; i < frames; ++i) log += fmt::format("frame {}(+0x1)[0x7f00]\n", i);
    return log;
  };
  const Words shown = {"[Epoch 0, batch 0] loss: 1.42579",
                       "rank 1: crashed by SIGSEGV; backtrace:", "frame 0(+0x1)[0x7f00]",
                       "frame 1(+0x1)[0x7f00]"};
  for (const int frames : {2, 3, 9})
    CHECK(last_lines_of_failure("start\n" + log_with_frames(frames), 4) == shown);
  CHECK(last_lines_of_failure(log_with_frames(9), 4) == shown);
  CHECK(last_lines_of_failure(log_with_frames(2), 9) == shown);
  CHECK(last_lines_of_failure("start\n" + log_with_frames(1), 4) ==
        Words{"start", shown[0], shown[1], shown[2]});
  CHECK(last_lines_of_failure(fmt::format("{}\n{}\n{}\n", shown[1], shown[2], shown[3]), 2) ==
        Words{shown[1], shown[2]});
  // A crash of an earlier attempt, after which the log goes on, is not the end of this one.
  CHECK(last_lines_of_failure(log_with_frames(9) + "rank 1: joined\n", 1) == Words{"rank 1: joined"});
}

TEST_CASE("the end of the first bytes of a log is read, at most what there is") {
  const TemporaryFolder folder;
  folder.write("log", "one\ntwo\nthree\n");
  CHECK(read_log_end(folder / "log", 100, 8) == "one\ntwo\n");
  CHECK(read_log_end(folder / "log", 4, 8) == "two\n");
  CHECK(read_log_end(folder / "log", 6) == "three\n");
  CHECK(read_log_end(folder / "log", 4, 0).empty());
  CHECK(read_log_end(folder / "log", 6, 999) == "three\n");
  CHECK(read_log_end(folder / "missing", 6, 8).empty());
}

TEST_CASE("a log that cannot be read is told from an empty one") {
  const TemporaryFolder folder;
  folder.write("log", "");
  CHECK(problem_of_reading(folder / "log") == 0);
  CHECK(problem_of_reading(folder / "missing") == ENOENT);
  CHECK(problem_of_reading(folder.path()) == EISDIR);
}

TEST_CASE(
    "tqdm_bar.py: of a progress bar the last state is shown, and no line is longer than a screen takes") {
  std::string bar;
  for (int i = 0; i < 3000; ++i) bar += "\r" + std::to_string(i) + "%|###   |";
  CHECK(last_lines(bar + "\nValueError: bad sample\n", 9) ==
        Words{"2999%|###   |", "ValueError: bad sample"});
  CHECK(last_lines(std::string(5000, 'x'), 1) == Words{std::string(997, 'x') + "..."});
}

TEST_CASE("whatever is in a log, what is shown of it is valid UTF-8 without control characters") {
  CHECK(last_lines(std::string("a\0b\x9b\xff\x07", 6) + "c\xc2\x9b"
                                                        "d\xc3\xa9",
                   1) == Words{"a?b\uFFFD\uFFFD?c?d\xc3\xa9"});
  CHECK(printable("\x1b]0;title\x07\t\x7f") == "?]0;title?\t?");
  CHECK(is_utf8("caf\xc3\xa9"));
  CHECK_FALSE(is_utf8("caf\xc3"));
}

TEST_CASE("a text is not cut inside a letter") {
  CHECK(shorten("abc", 3) == "abc");
  CHECK(shorten("caf\xc3\xa9 au lait", 8) == "caf\xc3\xa9...");
  CHECK(shorten("caf\xc3\xa9 au lait", 7) == "caf...");
}

}  // namespace
}  // namespace fleetrun::launch::last_lines_test
