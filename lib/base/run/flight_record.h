// The last collectives of one communicator on one rank: what was begun when, and what has ended. The record lies
// after the rank's progress page, so that the launcher can read it when the rank is stopped or dead. Of fixed
// size; noting a collective allocates nothing and calls nothing but the clock.
#pragma once
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/number/dtype.h"

namespace fleetrun {

// What a collective is, apart from where its data lies.
struct CollectiveNote {
  static constexpr std::int32_t kNoRoot = -1;

  std::string_view name;       // "all_reduce"; of up to 16 letters
  std::string_view reduction;  // "sum"; "" when nothing is reduced; of up to 8 letters
  std::uint64_t count = 0;     // elements
  DType dtype = DType::f32;
  std::int32_t root = kNoRoot;
};

// One collective as it is read back.
struct FlightEntry {
  std::uint64_t number = 0;  // from 1
  std::string name, reduction;
  std::uint64_t count = 0;
  DType dtype = DType::f32;
  std::int32_t root = CollectiveNote::kNoRoot;
  std::int64_t start_ns = 0;  // CLOCK_MONOTONIC
  std::int64_t end_ns = 0;    // 0: under way

  bool same_call(const FlightEntry& other) const;  // whoever made it, and when
  std::string describe() const;                    // "all_reduce of 1000 f32 (sum)"
};

std::string describe(const CollectiveNote& note);

// A record as it is read back.
struct FlightHistory {
  std::string communicator;
  std::uint64_t begun = 0, ended = 0;  // collectives so far
  std::vector<FlightEntry> entries;    // ascending by number; the last one is the last one begun

  const FlightEntry* find(std::uint64_t number) const;
};

// Lies in memory that starts as zeros; another process may read while its one writer writes.
class FlightRecord {
 public:
  static constexpr std::size_t kEntries = 1024;

  void name(std::string_view communicator);
  void begin(std::uint64_t number, const CollectiveNote& note);
  void end(std::uint64_t number);

  bool used() const { return name_[0].load(std::memory_order_acquire) != 0; }
  FlightHistory read() const;

 private:
  using Word = std::atomic<std::uint64_t>;

  // One cache line. `number` is 0 while the rest is written, and the last to be written: who finds the same
  // number before and after reading the rest has read one collective.
  struct Slot {
    Word number, name[2], reduction, count, dtype_and_root, start, end;
  };
  static_assert(sizeof(Slot) == 64 && Word::is_always_lock_free);

  Slot& slot(std::uint64_t number) { return slots_[number % kEntries]; }

  Word name_[4];
  Word begun_, ended_;
  std::array<Slot, kEntries> slots_;
};

// The records of one rank, one for each communicator.
class FlightRecords {
 public:
  static constexpr std::size_t kMost = 64;  // with a flat, an inner and an outer one for each of 21

  // The next free one, now with that name; null when all are taken.
  FlightRecord* add(std::string_view communicator);
  std::vector<FlightHistory> read() const;

 private:
  std::array<FlightRecord, kMost> records_;
};

}  // namespace fleetrun
