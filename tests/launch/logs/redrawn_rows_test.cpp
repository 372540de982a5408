#include "launch/logs/redrawn_rows.h"

#include <random>

#include <doctest/doctest.h>

#include "launch/logs/log_text.h"

namespace fleetrun::launch::redrawn_rows_test {
namespace {

using namespace std::chrono_literals;

constexpr const char* kUp = "\x1b[A";

TimePoint at(Clock::duration time) { return TimePoint(1h + time); }

// What tqdm writes for a bar that is `row` rows below the first one.
std::string bar(int row, const std::string& state) {
  std::string text(static_cast<std::size_t>(row), '\n');
  text += "\r" + state;
  for (int up = 0; up < row; ++up) text += kUp;
  return text;
}

// An epoch with three batches.
std::string epoch(const std::string& state) {
  return bar(0, state) + bar(1, "batch 1") + bar(1, "batch 2") + bar(1, "batch 3") + "\n\r       \r" + kUp;
}

std::string all_of(LogText& text, const std::string& bytes, std::size_t piece) {
  std::string shown;
  for (std::size_t start = 0; start < bytes.size(); start += piece)
    shown += text.take(std::string_view(bytes).substr(start, piece), at(0s));
  return shown + text.finish();
}

TEST_CASE("hunt 19: nested progress bars show their last states, however the log is read") {
  const std::string log = epoch("epoch 0") + epoch("epoch 1") + bar(0, "epoch 2\n") + "END\n";
  for (std::size_t piece = 1; piece <= log.size(); ++piece) {
    LogText text;
    text.keep_bar();
    CHECK(all_of(text, log, piece) == "epoch 0\nepoch 2\nEND\n");
  }
}

TEST_CASE("the bar of a terminal is the lowest of nested bars") {
  LogText text([] { return std::string("[1] "); });
  text.keep_bar();
  CHECK(text.take(bar(0, "epoch 0"), at(0s)) == "");
  CHECK(text.take(bar(1, "batch 1"), at(0s)) == "[1] epoch 0\n");
  CHECK(text.bar() == "[1] batch 1");
  CHECK(text.take(bar(1, "batch 2"), at(5s)) == "");
  CHECK(text.bar() == "[1] batch 2");
  CHECK(text.take(bar(0, "epoch 1"), at(5s)) == "");
  CHECK(text.bar() == "[1] batch 2");
  CHECK(text.finish() == "[1] epoch 1\n[1] batch 2\n");
  CHECK(text.bar() == "");
}

TEST_CASE("rows that end long after the cursor has left the upper one are shown once, and are closed") {
  RedrawnRows rows;
  rows.open("batch 0");
  std::string_view text = "\x1b[A\repoch 0\n\rbatch 1";
  CHECK(rows.take(text, at(0s)) == "");
  text = "\rbatch 2\n";
  CHECK(rows.take(text, at(5s)) == "epoch 0\nbatch 2\n");
  CHECK_FALSE(rows.are_open());
  CHECK_FALSE(rows.have_row_above());
  CHECK(rows.drop_finished(at(5s)) == "");
  CHECK_FALSE(rows.are_open());
}

TEST_CASE("nested bars that end leave lines as they are, whenever somebody looks") {
  for (const Clock::duration pause : {0ms, 50ms, 999ms, 1000ms, 5000ms}) {
    CAPTURE(pause.count());
    LogText text;
    TimePoint now = at(0s);
    std::string shown;
    for (const std::string& written :
         {bar(0, "epoch 0"), bar(1, "batch 1"), bar(1, "batch 2"), std::string("\n\r       \r") + kUp,
          bar(0, "epoch 1\n"), std::string("line 0\n"), std::string(), std::string(),
          std::string("line 1\n")})
      shown += text.take(written, now += pause);
    CHECK_MESSAGE(shown.ends_with("epoch 1\nline 0\nline 1\n"), shown);
    CHECK(text.finish() == "");
  }
}

TEST_CASE("whatever a program writes, and whenever somebody looks, the lines after it are shown") {
  const std::vector<std::string> parts = {
      "a",       "word",   "\r",     "\n",      "\x1b[A",  "\x1b[3A", "\x1b[B",
      "\x1b[9B", "\x1b[K", "\x1b[J", "\x1b[2K", "\x1b[1m", "\x1b[",   std::string(3000, 'x')};
  std::mt19937 random(1);
  for (int run = 0; run < 2000; ++run) {
    CAPTURE(run);
    LogText text;
    if (random() % 2 == 0) text.keep_bar();
    TimePoint now = at(0s);
    for (int piece = 0; piece < 60; ++piece) {
      text.take(parts[random() % parts.size()], now += std::chrono::milliseconds(random() % 1500));
      text.bar();
    }
    text.finish();
    CHECK(text.take("end\n", now) == "end\n");
  }
}

TEST_CASE("without a terminal, nested bars show each new state at most once per second") {
  LogText text;
  CHECK(text.take(bar(0, "epoch 0") + bar(1, "batch 1"), at(0s)) == "epoch 0\nbatch 1\n");
  for (int batch = 2; batch < 100; ++batch)
    CHECK(text.take(bar(1, "batch " + std::to_string(batch)), at(500ms)) == "");
  CHECK(text.take(bar(0, "epoch 1"), at(1s)) == "epoch 1\nbatch 99\n");
  CHECK(text.take(bar(1, "batch 1"), at(3s)) == "batch 1\n");
  CHECK(text.finish() == "");
}

TEST_CASE("three nested bars") {
  LogText text;
  text.keep_bar();
  const std::string log = bar(0, "a 1") + bar(1, "b 1") + bar(2, "c 1") + bar(2, "c 2") + bar(1, "b 2") +
                          bar(2, "c 3") + "\n\n\nEND\n";
  CHECK(text.take(log, at(0s)) == "a 1\nb 1\nb 2\nc 3\nEND\n");
}

TEST_CASE("a table that is erased and written anew shows its last state, and lines between") {
  const std::string erase = "\r\x1b[2K\x1b[1A\x1b[2K";
  LogText text;
  text.keep_bar();
  CHECK(text.take("Training 1%\nEpoch 1", at(0s)) == "Training 1%\n");
  for (int state = 2; state < 50; ++state) {
    const std::string number = std::to_string(state);
    CHECK(text.take(erase + "Training " + number + "%\nEpoch " + number, at(1s)) == "");
  }
  CHECK(text.bar() == "Epoch 49");
  CHECK(text.take(erase + "saved\nTraining 50%\nEpoch 50", at(1s)) == "saved\nTraining 50%\n");
  CHECK(text.take("\nEND\n", at(1s)) == "Epoch 50\nEND\n");
}

TEST_CASE("a traceback below nested bars is shown") {
  LogText text;
  text.keep_bar();
  text.take(epoch("epoch 0") + bar(1, "batch 1"), at(0s));
  CHECK(text.take("\n\nTraceback (most recent call last):\n  File \"a.py\"\nKeyError: 1\n", at(0s)) ==
        "batch 1\nTraceback (most recent call last):\n  File \"a.py\"\nKeyError: 1\n");
}

TEST_CASE("the rows are bounded, and so is each of them") {
  RedrawnRows rows;
  rows.open("");
  std::string_view up = "\x1b[99999999999999999999A\x1b[5F\x1b[0A";
  CHECK(rows.take(up, at(0s)) == "");
  const std::string downs(99, '\n'), line(10000, 'x');
  std::string_view text = downs;
  CHECK(rows.take(text, at(0s)) == "");
  REQUIRE(rows.are_open());
  std::string_view last = "\n";
  CHECK(rows.take(last, at(0s)) == "");
  CHECK_FALSE(rows.are_open());
  rows.open("");
  std::string_view is_long = line;
  CHECK(rows.take(is_long, at(0s)) == "");
  CHECK(rows.are_too_long());
  CHECK(rows.take_row() == line);
  CHECK_FALSE(rows.are_too_long());
  LogText shown;
  CHECK(shown.take("a\x1b[A" + line + "\n\xc3", at(0s)) == "a\n" + line + "\n");
  CHECK(shown.take("\xa4\n", at(0s)) == "\xc3\xa4\n");
}

TEST_CASE("a line that is longer than any row may stand in front of a cursor that moves up") {
  const std::string line(10000, 'x');
  for (const char* up : {"\x1b[A", "\x1b[A\x1b[A", "\x1b[F"}) {
    LogText text;
    CHECK(text.take(line + up + "y" + up + line + up + "z\n", at(0s)) + text.finish() ==
          line + "\ny\n" + line + "\nz\n");
  }
}

TEST_CASE("what is written after the cursor has moved to a row replaces it, also without a carriage return") {
  for (const char* up : {"\x1b[F", "\x1b[A", "\x1b[A\x1b[J", "\x1b[1A\x1b[2K", "\x1b[A\x1b[K"}) {
    LogText text;
    text.keep_bar();
    CHECK(text.take("loss 1\n", at(0s)) == "loss 1\n");
    for (int step = 2; step < 100; ++step)
      CHECK(text.take(up + ("loss " + std::to_string(step)) + "\n", at(0s)) == "");
    CHECK(text.take("END\n", at(0s)) == "loss 99\nEND\n");
  }
}

TEST_CASE("an exception that is printed below nested bars keeps its lines") {
  LogText text;
  text.keep_bar();
  text.take(bar(0, "epoch 0") + bar(1, "batch 1"), at(0s));
  CHECK(text.take("Traceback (most recent call last):\n  File \"a.py\"\nKeyError: 1\n", at(0s)) ==
        "Traceback (most recent call last):\n  File \"a.py\"\nKeyError: 1\n");
}

TEST_CASE("a line above a bar is shown once the cursor has not been there for a second") {
  const std::string message = epoch("epoch 0") + "\r       \rsaved\n\rtrain 1";
  for (const std::string more : {"", "\rtrain 2"}) {
    LogText text;
    text.keep_bar();
    CHECK(text.take(message, at(0s)) == "epoch 0\n");
    CHECK(text.waits());
    CHECK(text.take("", at(900ms)) == "");
    CHECK(text.take(more, at(1s)) == "saved\n");
    CHECK_FALSE(text.waits());
  }
}

TEST_CASE("rows that a program reaches by moving down stay the same rows") {
  LogText text;
  text.keep_bar();
  std::string log = "a 1\nb 1\n";
  for (int state = 2; state < 300; ++state)
    log +=
        "\x1b[2A\ra " + std::to_string(state) + "\x1b[2B" + "\x1b[1A\rb " + std::to_string(state) + "\x1b[1E";
  CHECK(text.take(log + "END\n", at(0s)) == "a 1\nb 1\na 299\nb 299\nEND\n");
}

TEST_CASE("colours and other escape sequences open no rows") {
  LogText text;
  CHECK(text.take("\x1b[31mred\x1b[0m\n\x1b[Kx\n", at(0s)) == "red\nx\n");
  CHECK(text.take("\x1b[3", at(0s)) == "");
  CHECK(text.take("1mred\n", at(0s)) == "red\n");
}

}  // namespace
}  // namespace fleetrun::launch::redrawn_rows_test
