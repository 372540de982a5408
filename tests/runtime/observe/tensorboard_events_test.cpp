#include "runtime/observe/tensorboard_events.h"

#include <doctest/doctest.h>

#include <filesystem>

#include "base/error/error.h"
#include "support/temporary_folder.h"

namespace fleetrun::runtime::tensorboard_events_test {
namespace {

std::string bytes(std::initializer_list<int> values) {
  std::string text;
  for (const int value : values) text += static_cast<char>(value);
  return text;
}

TEST_CASE("the sums are those of RFC 3720, B.4") {
  CHECK(crc32c(std::string(32, '\0')) == 0x8a9136aa);
  CHECK(crc32c(std::string(32, '\xff')) == 0x62a8ab43);
  std::string ascending;
  for (char i = 0; i < 32; ++i) ascending += i;
  CHECK(crc32c(ascending) == 0x46dd794e);
  CHECK(crc32c("123456789") == 0xe3069283);
}

TEST_CASE("a record is length, sum, data, sum") {
  const std::string record = tf_record("abc");
  REQUIRE(record.size() == 8 + 4 + 3 + 4);
  CHECK(record.substr(0, 8) == bytes({3, 0, 0, 0, 0, 0, 0, 0}));
  CHECK(record.substr(12, 3) == "abc");
}

TEST_CASE("events are protobuf messages") {
  // wall_time: 1.0; file_version
  CHECK(version_event(1) == bytes({0x09, 0, 0, 0, 0, 0, 0, 0xf0, 0x3f, 0x1a, 13}) + "brain.Event:2");
  // step: 300; summary { value { tag: "a" simple_value: 0.5 } }
  CHECK(scalars_event(300, 1, {{"a", 0.5}}) ==
        bytes({0x09, 0,  0,    0, 0,    0, 0,   0xf0, 0x3f, 0x10, 0xac, 0x02,
               0x2a, 10, 0x0a, 8, 0x0a, 1, 'a', 0x15, 0,    0,    0,    0x3f}));
  // step: 7; session_log { status: START }
  CHECK(restart_event(7, 1) == bytes({0x09, 0, 0, 0, 0, 0, 0, 0xf0, 0x3f, 0x10, 7, 0x3a, 2, 0x08, 1}));
}

TEST_CASE("a file grows by a whole record with each call") {
  const TemporaryFolder home;
  EventFile file(home / "board", 1700000000.25);
  CHECK(file.path().starts_with(home / "board/events.out.tfevents.1700000000."));
  std::string expected = tf_record(version_event(1700000000.25));
  const auto content = [&] { return home.read(file.path().substr(home.path().size() + 1)); };
  CHECK(content() == expected);
  file.add(1, 2.5, {{"train/loss", 0.75}, {"train/acc1", 0.5}});
  expected += tf_record(scalars_event(1, 2.5, {{"train/loss", 0.75}, {"train/acc1", 0.5}}));
  CHECK(content() == expected);
  file.start_again_at(1, 3);
  expected += tf_record(restart_event(1, 3));
  CHECK(content() == expected);
}

TEST_CASE("a file that has the name already stays as it is") {
  const TemporaryFolder home;
  const EventFile first(home / "board", 1700000000.25);
  const std::string name = first.path().substr(home.path().size() + 1), before = home.read(name);
  const EventFile second(home / "board", 1700000000.5);
  CHECK(second.path() == first.path() + ".1");
  CHECK(home.read(name) == before);
}

TEST_CASE("a folder that cannot be made is an error that names it") {
  const TemporaryFolder home;
  home.write("board", "a file");
  CHECK_THROWS_AS(EventFile(home / "board", 1), Error);
}

}  // namespace
}  // namespace fleetrun::runtime::tensorboard_events_test
