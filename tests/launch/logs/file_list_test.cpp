#include "launch/logs/file_list.h"

#include <doctest/doctest.h>

namespace fleetrun::launch::file_list_test {
namespace {

TEST_CASE("a list that is written is read back, without a last line that was cut off") {
  const FileList list = {.run_id = "a run",
                         .ranks = 3,
                         .ended = false,
                         .files = {{.name = "attempt-0/workerlog.1", .inode = 7, .birth_ns = 9, .end = {}},
                                   {.name = "report.json", .inode = 8, .birth_ns = 0, .end = {{5, 6}}}}};
  const std::string text = format_file_list(list);
  for (const std::string& read : {text, text + "made 12 0 workerl"}) {
    const auto found = parse_file_list(read);
    REQUIRE(found);
    CHECK(format_file_list(*found) == text);
  }
  CHECK_FALSE(parse_file_list("of the user"));
}

TEST_CASE("a file that runs on is ours by inode and birth, whatever its name is by now") {
  const FileRecord record = {.name = "workerlog.0", .inode = 7, .birth_ns = 9, .end = {}};
  CHECK(is_ours(record, "attempt-0/workerlog.0", {.inode = 7, .birth_ns = 9}));
  CHECK(is_ours(record, "anything", {.inode = 7, .birth_ns = 9}));
  CHECK_FALSE(is_ours(record, "workerlog.0", {.inode = 7, .birth_ns = 10}));
  CHECK_FALSE(is_ours(record, "workerlog.0", {.inode = 8, .birth_ns = 9}));
}

TEST_CASE(
    "a copy of a file that ended is ours by name, size and time, in whole seconds where the copy keeps no more") {
  constexpr std::int64_t kSecond = 1'000'000'000;
  const FileRecord record = {
      .name = "workerlog.0", .inode = 7, .birth_ns = 9, .end = {{.size = 5, .changed_ns = 3 * kSecond + 70}}};
  const auto copied = [&](std::int64_t size, std::int64_t changed_ns) {
    return is_ours(record, "workerlog.0",
                   {.inode = 8, .birth_ns = 11, .size = size, .changed_ns = changed_ns});
  };
  CHECK(copied(5, 3 * kSecond + 70));
  CHECK(copied(5, 3 * kSecond));
  CHECK_FALSE(copied(5, 3 * kSecond + 71));
  CHECK_FALSE(copied(5, 4 * kSecond));
  CHECK_FALSE(copied(6, 3 * kSecond));
}

TEST_CASE("a file that somebody wrote after it ended is not ours, also at the same length") {
  const FileRecord record = {
      .name = "workerlog.0", .inode = 7, .birth_ns = 9, .end = {{.size = 5, .changed_ns = 70}}};
  const auto found = [&](std::int64_t size, std::int64_t changed_ns) {
    return is_ours(record, "attempt-0/workerlog.0",
                   {.inode = 7, .birth_ns = 9, .size = size, .changed_ns = changed_ns});
  };
  CHECK(found(5, 70));
  CHECK(found(0, 90));  // nothing is lost with it
  CHECK_FALSE(found(5, 90));
  CHECK_FALSE(found(6, 70));
}

TEST_CASE("where the file system knows no birth, another file that got our inode is not ours") {
  const FileRecord record = {.name = "workerlog.0", .inode = 7, .birth_ns = 0, .end = {}};
  CHECK(is_ours(record, "workerlog.0", {.inode = 7, .birth_ns = 0}));
  CHECK(is_ours(record, "attempt-0/workerlog.0", {.inode = 7, .birth_ns = 0}));
  CHECK_FALSE(is_ours(record, "workerlog.1", {.inode = 7, .birth_ns = 0}));
  CHECK_FALSE(is_ours(record, "attempt-0/notes", {.inode = 7, .birth_ns = 0}));
  const FileRecord temporary = {.name = "report.json.77.tmp", .inode = 7, .birth_ns = 0, .end = {}};
  CHECK(is_ours(temporary, "report.json", {.inode = 7, .birth_ns = 0}));
  CHECK_FALSE(is_ours(temporary, "train.json", {.inode = 7, .birth_ns = 0}));
}

}  // namespace
}  // namespace fleetrun::launch::file_list_test
