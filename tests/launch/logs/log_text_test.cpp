#include "launch/logs/log_text.h"

#include <doctest/doctest.h>

namespace fleetrun::launch::log_text_test {
namespace {

using namespace std::chrono_literals;

TimePoint at(Clock::duration time) { return TimePoint(1h + time); }

TEST_CASE("only whole lines are shown, and the rest at the end") {
  LogText text;
  CHECK(text.take("one\ntw", at(0s)) == "one\n");
  CHECK(text.take("o", at(0s)).empty());
  CHECK(text.take("\nthree", at(0s)) == "two\n");
  CHECK(text.finish() == "three");
  CHECK(text.finish().empty());
}

TEST_CASE("each line gets the prefix, a last one without an end too") {
  LogText text([] { return std::string("[3] "); });
  CHECK(text.take("a\n\nb\nc", at(0s)) == "[3] a\n[3] \n[3] b\n");
  CHECK(text.finish() == "[3] c\n");
}

TEST_CASE("a line that was rewritten shows its last state") {
  CHECK(clean_line("10%\r20%\r30%") == "30%");
  CHECK(clean_line("done\r") == "done");
  CHECK(clean_line("10%\r\r100%\r\r") == "100%");
  LogText text;
  CHECK(text.take("dos\r\nline\r\n", at(0s)) == "dos\nline\n");
}

TEST_CASE("a running progress bar shows one state a second") {
  LogText text;
  CHECK(text.take("\r 1%\r 2%\r 3", at(0s)) == " 2%\n");
  CHECK(text.take("%\r 4%\r", at(500ms)).empty());
  CHECK(text.take("\r 5%\r 6%", at(1s)) == " 5%\n");
  CHECK(text.take("\r 100%\n", at(1s)) == " 100%\n");
}

TEST_CASE("of a progress bar that a line of its own shows, only the last state is text") {
  LogText text([] { return std::string("[1] "); });
  text.keep_bar();
  CHECK(text.bar() == "");
  CHECK(text.take("start\n\r 1%\r 2%", at(0s)) == "[1] start\n");
  CHECK(text.bar() == "[1]  2%");
  CHECK(text.take("\r 3%\r", at(5s)) == "");
  CHECK(text.bar() == "[1]  3%");
  CHECK(text.take("\r\r", at(9s)) == "");
  CHECK(text.bar() == "[1]  3%");
  for (int state = 0; state < 10000; ++state) CHECK(text.take("\r a long bar", at(10s)) == "");
  CHECK(text.take("\r100%\nend", at(11s)) == "[1] 100%\n");
  CHECK(text.bar() == "");
  CHECK(text.take("ing\n\r 1%\r 2%\r", at(12s)) == "[1] ending\n");
  CHECK(text.finish() == "[1]  2%\n");
}

TEST_CASE("escape sequences are taken out, also unfinished ones") {
  CHECK(clean_line("\x1b[1;31mred\x1b[0m and \x1b[Kplain") == "red and plain");
  CHECK(clean_line("\x1b]0;title\atext") == "text");
  CHECK(clean_line("\x1b]8;;http://x\x1b\\link\x1b]8;;\x1b\\") == "link");
  CHECK(clean_line("\x1b(Bascii\x1b=") == "ascii");
  for (const char* unfinished : {"a\x1b", "a\x1b[", "a\x1b[31", "a\x1b]0;t", "a\x1b("})
    CHECK(clean_line(unfinished) == "a");
}

TEST_CASE("other control characters are visible, and all other bytes stay as they are") {
  CHECK(clean_line(std::string("a\0b\bc\x7f", 6)) == "a?b?c?");
  std::string high;
  for (int code = 0x80; code <= 0xff; ++code) high += static_cast<char>(code);
  CHECK(clean_line("\t" + high) == "\t" + high);
  LogText text;
  CHECK(text.take(std::string("x\0\n", 3) + high + "\n", at(0s)) == "x?\n" + high + "\n");
}

TEST_CASE("long_lines.py: a line over 8 KiB is broken where another log may write between") {
  LogText text([] { return std::string("[0] "); });
  const std::string part(9000, 'A');
  CHECK(text.take(part, at(0s)) == "[0] " + part + "\n");
  CHECK(text.take(part, at(1s)) == "[0] " + part + "\n");
  CHECK(text.take("\nEND", at(2s)).empty());  // the end of a line that has got one
  CHECK(text.finish() == "[0] END\n");
}

TEST_CASE("a line that a pattern has to match is searched as a whole") {
  LogText text({}, [](const std::string& line) { return line.ends_with("END"); });
  const std::string part(9000, 'A');
  CHECK(text.take(part, at(0s)).empty());
  CHECK(text.take("END\nshort\n", at(1s)) == part + "END\n");
}

TEST_CASE("a line is not broken inside a letter") {
  LogText text([] { return std::string(); });
  const std::string part(9000, 'A');
  CHECK(text.take(part + "\xc3", at(0s)) == part + "\n");
  CHECK(text.take("\xa9\n", at(0s)) == "\xc3\xa9\n");
}

TEST_CASE("control characters that take two bytes are visible, too") {
  CHECK(clean_line("a\xc2\x9b"
                   "31mb\xc2\xa9") == "a?31mb\xc2\xa9");
}

TEST_CASE("a very long line comes in pieces") {
  LogText text;
  const std::string line(20000, 'y');
  CHECK(text.take(line, at(0s)) == line);
  CHECK(text.take("\n", at(0s)) == "\n");
}

}  // namespace
}  // namespace fleetrun::launch::log_text_test
