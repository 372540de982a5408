#include "launch/serve/remote_log.h"

#include <doctest/doctest.h>
#include <fmt/format.h>

namespace fleetrun::launch::remote_log_test {
namespace {

const TimePoint kNow = TimePoint() + std::chrono::hours(1);

JsonValue piece(std::int64_t from, const std::string& text, std::int64_t size, int attempt = 0) {
  return JsonValue::object(
      {{"attempt", attempt}, {"from", from}, {"bytes", text.size()}, {"size", size}, {"text", text}});
}

RemoteLog log_of(int attempt = 0) {
  return {{.rank = 17, .local_rank = 1, .errors = false, .attempt = attempt, .since = {}},
          LogText([] { return "[17] "; })};
}

TEST_CASE("a log is asked for from where its last piece ended, and shown in whole lines") {
  RemoteLog log = log_of();
  CHECK(to_json(log.wish()) == R"({"local_rank": 1, "errors": false, "attempt": 0, "from": 0})");
  CHECK(log.take(piece(0, "one\ntw", 10), 0, kNow) == "[17] one\n");
  CHECK(log.has_news());
  CHECK(log.behind() == 4);
  CHECK(to_json(log.wish()).ends_with("\"from\": 6}"));
  CHECK(log.take(piece(6, "o\nx", 9), 0, kNow) == "[17] two\n");
  CHECK(log.take(piece(9, "", 9), 0, kNow).empty());
  CHECK_FALSE(log.has_news());
  CHECK(log.finish() == "[17] x\n");
}

TEST_CASE("a prefix has the attempt of each line") {
  const auto attempt = std::make_shared<int>(0);
  RemoteLog log({.rank = 1, .local_rank = 1, .errors = false, .attempt = 0, .since = {}},
                LogText([attempt] { return fmt::format("#{} ", *attempt); }), attempt);
  CHECK(log.take(piece(0, "one\ntw", 6), 1, kNow) == "#0 one\n#0 tw\n");  // and then the log of the next one
  CHECK(log.take(piece(0, "two\n", 4, 1), 1, kNow) == "#1 two\n");
}

TEST_CASE("escape sequences of a rank do not reach the terminal") {
  RemoteLog log = log_of();
  CHECK(log.take(piece(0, "\x1b[31mred\x1b[0m\a\n", 14), 0, kNow) == "[17] red?\n");
}

TEST_CASE("a log that was emptied is shown from its start again") {
  RemoteLog log = log_of();
  log.take(piece(0, "half a li", 9), 0, kNow);
  CHECK(log.take(piece(0, "new\n", 4), 0, kNow) == "[17] half a li\n[17] new\n");
}

TEST_CASE("when a restart has ended a log, all of it is shown, then the next one") {
  RemoteLog log = log_of();
  CHECK(log.take(piece(0, "one\n", 8), 1, kNow) == "[17] one\n");
  CHECK(to_json(log.wish()).ends_with(R"("attempt": 0, "from": 4})"));
  CHECK(log.take(piece(4, "last", 8), 1, kNow) == "[17] last\n");
  CHECK(log.has_news());
  CHECK(to_json(log.wish()).ends_with(R"("attempt": 1, "from": 0})"));
  CHECK(log.take(piece(0, "again\n", 6, 1), 1, kNow) == "[17] again\n");
}

TEST_CASE("the first answer says which attempt is the present one") {
  RemoteLog log = log_of(RemoteLog::kPresent);
  log.take(piece(0, "x\n", 2, 3), 3, kNow);
  CHECK(to_json(log.wish()).ends_with(R"("attempt": 3, "from": 2})"));
}

TEST_CASE("a log ends with the last attempt in which the rank has its number") {
  RemoteLog log = log_of();
  log.end_after(1);
  log.take(piece(0, "zero\n", 5), 2, kNow);
  CHECK_FALSE(log.ended());
  CHECK(log.take(piece(0, "one\nhalf", 8, 1), 1, kNow) == "[17] one\n");  // attempt 1 still runs there
  CHECK_FALSE(log.ended());
  CHECK(log.take(piece(8, "!\n", 10, 1), 2, kNow) == "[17] half!\n");
  CHECK(log.ended());
}

TEST_CASE(
    "a log of an earlier attempt that is no longer where it was has lost its rest, and the next one follows") {
  const JsonValue nothing = JsonValue::object({{"attempt", 0}, {"missing", false}});
  RemoteLog log = log_of();
  log.take(piece(0, "one\nha", 6), 0, kNow);
  CHECK_FALSE(log.lost_rest());
  CHECK(log.take(nothing, 1, kNow) == "[17] ha\n");
  CHECK(log.lost_rest());
  CHECK(log.take(piece(0, "again\n", 6, 1), 1, kNow) == "[17] again\n");
  CHECK_FALSE(log.lost_rest());

  RemoteLog unseen = log_of();
  unseen.take(nothing, 1, kNow);
  CHECK_FALSE(unseen.lost_rest());
}

TEST_CASE("of an attempt that begins after the last one, nothing is shown") {
  RemoteLog log = log_of(RemoteLog::kPresent);
  log.end_after(0);
  CHECK(log.take(piece(0, "of another rank\n", 16, 1), 1, kNow).empty());
  CHECK(log.ended());
}

TEST_CASE(
    "an attempt that never began, because a node was lost before it, has no log, and the next one follows") {
  RemoteLog log = log_of(1);
  const JsonValue none = JsonValue::object({{"attempt", 1}, {"missing", false}});
  CHECK(log.take(none, 1, kNow).empty());
  CHECK_FALSE(log.has_news());  // it may begin yet
  CHECK(log.take(none, 2, kNow).empty());
  CHECK(log.has_news());
  CHECK(to_json(log.wish()).ends_with(R"("attempt": 2, "from": 0})"));
}

TEST_CASE("what is skipped ends at the start of a line") {
  RemoteLog log = log_of();
  log.take(piece(0, "one\ntw", 1000), 0, kNow);
  CHECK(log.skip(100) == "[17] tw\n");
  CHECK(to_json(log.wish()).ends_with("\"from\": 900}"));
  CHECK(log.take(piece(900, "rest of a line", 1000), 0, kNow).empty());
  CHECK(log.take(piece(914, ", its end\nwhole\n", 1000), 0, kNow) == "[17] whole\n");
}

TEST_CASE("an answer that is none of ours changes nothing") {
  RemoteLog log = log_of();
  CHECK(log.take(JsonValue::object({{"text", 7}, {"from", "x"}}), 0, kNow).empty());
  CHECK(log.take(JsonValue(), 0, kNow).empty());
  CHECK_FALSE(log.has_news());
  CHECK(read_log_answer(JsonValue(), 1).pieces == nullptr);
  CHECK(read_log_answer(JsonValue::object({{"logs", JsonValue::list({})}}), 1).pieces == nullptr);
  CHECK(log.take(JsonValue::object({{"missing", true}}), 0, kNow).empty());
  CHECK(log.missing());
}

}  // namespace
}  // namespace fleetrun::launch::remote_log_test
