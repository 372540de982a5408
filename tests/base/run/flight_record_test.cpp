#include "base/run/flight_record.h"

#include <doctest/doctest.h>

#include <atomic>
#include <memory>
#include <thread>

#include "base/run/progress_page.h"

namespace fleetrun::flight_record_test {
namespace {

constexpr CollectiveNote kSum = {.name = "all_reduce", .reduction = "sum", .count = 1000};

TEST_CASE("what was begun and ended comes back in order, with what it was and when") {
  const auto record = std::make_unique<FlightRecord>();
  record->name("world");
  record->begin(1, kSum);
  record->end(1);
  record->begin(2, {.name = "broadcast", .count = 7, .dtype = DType::i64, .root = 3});
  const FlightHistory history = record->read();
  CHECK(history.communicator == "world");
  CHECK(history.begun == 2);
  CHECK(history.ended == 1);
  REQUIRE(history.entries.size() == 2);
  CHECK(history.entries[0].describe() == "all_reduce of 1000 f32 (sum)");
  CHECK(history.entries[0].start_ns > 0);
  CHECK(history.entries[0].end_ns >= history.entries[0].start_ns);
  CHECK(history.entries[1].describe() == "broadcast of 7 i64 from rank 3");
  CHECK(history.entries[1].start_ns >= history.entries[0].end_ns);
  CHECK(history.entries[1].end_ns == 0);
  CHECK(history.find(2) == &history.entries[1]);
  CHECK(history.find(3) == nullptr);
}

TEST_CASE("the last 1,024 are kept and no more") {
  const auto record = std::make_unique<FlightRecord>();
  for (std::uint64_t number = 1; number <= 3000; ++number) {
    record->begin(number, {.name = "all_gather", .count = number});
    record->end(number);
  }
  const FlightHistory history = record->read();
  CHECK(history.begun == 3000);
  REQUIRE(history.entries.size() == 1024);
  CHECK(history.entries.front().number == 3000 - 1023);
  for (const FlightEntry& entry : history.entries) CHECK(entry.count == entry.number);
}

TEST_CASE("the words say to whom something is reduced, and a barrier has no size") {
  CHECK(describe({.name = "barrier"}) == "barrier");
  CHECK(describe({.name = "reduce", .reduction = "max", .count = 5, .dtype = DType::bf16, .root = 0}) ==
        "reduce of 5 bf16 (max) to rank 0");
}

TEST_CASE("who reads while somebody writes gets whole entries or none") {
  const auto record = std::make_unique<FlightRecord>();
  std::atomic<bool> stop = false;
  std::thread writer([&] {
    for (std::uint64_t number = 1; !stop; ++number) {
      record->begin(number, {.name = "all_gather", .count = number, .root = static_cast<int>(number)});
      record->end(number);
    }
  });
  int seen = 0, torn = 0;
  while (seen < 20'000)
    for (const FlightEntry& entry : record->read().entries) {
      ++seen;
      if (entry.count != entry.number || entry.root != static_cast<int>(entry.number)) ++torn;
    }
  stop = true;
  writer.join();
  CHECK(torn == 0);
}

TEST_CASE("a longer name than there is room for is cut") {
  const auto record = std::make_unique<FlightRecord>();
  record->name(std::string(100, 'x'));
  record->begin(1, {.name = "a name of more than 16 letters", .reduction = "some function"});
  CHECK(record->read().communicator == std::string(32, 'x'));
  CHECK(record->read().entries.front().name == "a name of more t");
  CHECK(record->read().entries.front().reduction == "some fun");
}

TEST_CASE("the launcher finds after a page what the worker wrote there, one record for each communicator") {
  const UniqueFd fd = make_progress_fd();
  const ProgressPagePtr of_launcher = map_new_progress_page(fd.get());
  const ProgressPagePtr of_worker = map_inherited_progress_page(fd.get());
  CHECK(of_launcher->records().read().empty());
  FlightRecord* first = of_worker->records().add("world");
  FlightRecord* second = of_worker->records().add("1");
  REQUIRE(first != nullptr);
  REQUIRE(second != nullptr);
  first->begin(1, kSum);
  const auto histories = of_launcher->records().read();
  REQUIRE(histories.size() == 2);
  CHECK(histories[0].entries.size() == 1);
  CHECK(histories[1].communicator == "1");
  CHECK(histories[1].entries.empty());
}

TEST_CASE("when all records are taken there is none") {
  const ProgressPagePtr page = map_inherited_progress_page(-1);
  for (std::size_t i = 0; i < FlightRecords::kMost; ++i) CHECK(page->records().add("x") != nullptr);
  CHECK(page->records().add("one too many") == nullptr);
}

}  // namespace
}  // namespace fleetrun::flight_record_test
