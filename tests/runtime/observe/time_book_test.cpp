#include "runtime/observe/time_book.h"

#include <doctest/doctest.h>

#include <numeric>

namespace fleetrun::runtime::time_book_test {
namespace {

constexpr std::int64_t kSecond = 1'000'000'000;

std::int64_t at(const TimeUses& times, TimeUse use) { return times[static_cast<std::size_t>(use)]; }

TEST_CASE("what nobody booked is idle, and all add up to the time since the run began") {
  const ProgressPagePtr page = map_inherited_progress_page(-1);
  page->run_start_ns = 10 * kSecond;
  TimeBook book(*page, 12 * kSecond);
  book.begin(0, 0, 13 * kSecond);
  book.add(TimeUse::compute, 4 * kSecond);
  book.add(TimeUse::data, kSecond);
  const TimeUses times = book.until(20 * kSecond);
  CHECK(at(times, TimeUse::compute) == 4 * kSecond);
  CHECK(at(times, TimeUse::idle) == 5 * kSecond);
  CHECK(at(times, TimeUse::restart) == 0);
  CHECK(std::accumulate(times.begin(), times.end(), std::int64_t{0}) == 10 * kSecond);
  book.publish(20 * kSecond);
  CHECK(page->spent_ns[static_cast<std::size_t>(TimeUse::idle)] == 5 * kSecond);
}

TEST_CASE("without a launcher the run begins with the book") {
  const ProgressPagePtr page = map_inherited_progress_page(-1);
  TimeBook book(*page, 12 * kSecond);
  CHECK(at(book.until(15 * kSecond), TimeUse::idle) == 3 * kSecond);
}

// An attempt of 8 s that computed 2 s for the first 5 samples, 3 s for 5 more, and died.
void first_attempt(ProgressPage& page) {
  page.run_start_ns = kSecond;
  TimeBook book(page, 2 * kSecond);
  book.begin(0, 0, 2 * kSecond);
  book.add(TimeUse::compute, 2 * kSecond);
  book.keep(5, 4 * kSecond);
  book.add(TimeUse::compute, 3 * kSecond);
  book.keep(10, 8 * kSecond);
}

TEST_CASE(
    "an attempt that goes on from a checkpoint keeps the time up to it, and the rest was lost by the restart") {
  for (const auto& [place, compute, idle] : {std::tuple{5, 2, 1}, {10, 5, 2}, {7, 0, 0}}) {
    CAPTURE(place);
    const ProgressPagePtr before = map_inherited_progress_page(-1);
    const ProgressPagePtr page = map_inherited_progress_page(-1);
    first_attempt(*before);
    before->carry_over_to(*page);
    TimeBook book(*page, 11 * kSecond);
    book.begin(1, place, 12 * kSecond);
    const TimeUses times = book.until(12 * kSecond);
    CHECK(at(times, TimeUse::compute) == compute * kSecond);
    CHECK(at(times, TimeUse::idle) == idle * kSecond);
    CHECK(at(times, TimeUse::restart) == (11 - compute - idle) * kSecond);
  }
}

TEST_CASE("an attempt that goes back to the older checkpoint forgets the newer one") {
  const ProgressPagePtr page = map_inherited_progress_page(-1);
  first_attempt(*page);
  TimeBook book(*page, 11 * kSecond);
  book.begin(1, 5, 12 * kSecond);
  CHECK(page->kept[0].place == 5);
  CHECK(page->kept[1].place == -1);
  book.keep(10, 13 * kSecond);  // the second time that the training comes here
  CHECK(page->kept[0].place == 5);
  CHECK(page->kept[1].place == 10);
}

TEST_CASE("the two last snapshots are kept") {
  const ProgressPagePtr page = map_inherited_progress_page(-1);
  first_attempt(*page);
  TimeBook book(*page, 8 * kSecond);
  book.keep(15, 9 * kSecond);
  CHECK(page->kept[0].place == 15);
  CHECK(page->kept[1].place == 10);
}

TEST_CASE("shares are rounded so that they add up") {
  const TimeUses thirds = {1, 1, 1, 0, 0, 0};
  CHECK(shares_of(thirds) == std::array<int, kTimeUses>{334, 333, 333, 0, 0, 0});
  CHECK(shares_of({}) == std::array<int, kTimeUses>{});
  for (std::int64_t i = 1; i < 500; ++i) {
    const std::array<int, kTimeUses> shares = shares_of({i * i, 7 * i, 13, i % 11, 3 * i % 17, 1000 - i});
    CHECK(std::accumulate(shares.begin(), shares.end(), 0) == 1000);
  }
}

TEST_CASE("the line says the shares and the time of a rank") {
  CHECK(
      describe_time({12 * kSecond, 4 * kSecond, kSecond, 0, 0, 3 * kSecond}, 2) ==
      "goodput: compute 60.0 %, communication 20.0 %, data 5.0 %, checkpoint 0.0 %, restart 0.0 %, idle 15.0 % of 10.0 s");
}

}  // namespace
}  // namespace fleetrun::runtime::time_book_test
