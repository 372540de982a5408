#include "base/run/flight_record.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <iterator>

#include <fmt/format.h>

namespace fleetrun {
namespace {

using Word = std::atomic<std::uint64_t>;

constexpr std::size_t kLettersPerWord = sizeof(std::uint64_t);

std::int64_t now_ns() {
  return std::chrono::steady_clock::now().time_since_epoch() / std::chrono::nanoseconds(1);
}

// Each store releases what came before it: who reads a new word sees that `number` was 0.
void put(Word& word, std::uint64_t value) { word.store(value, std::memory_order_release); }
std::uint64_t take(const Word& word) { return word.load(std::memory_order_acquire); }

void put_letters(Word* words, std::size_t count, std::string_view text) {
  for (std::size_t i = 0; i < count; ++i) {
    std::uint64_t value = 0;
    const std::size_t taken =
        text.copy(reinterpret_cast<char*>(&value), kLettersPerWord);  // perhaps of no text at all
    text.remove_prefix(taken);
    put(words[i], value);
  }
}

std::string take_letters(const Word* words, std::size_t count) {
  std::string text(count * kLettersPerWord, '\0');
  for (std::size_t i = 0; i < count; ++i) {
    const std::uint64_t value = take(words[i]);
    std::memcpy(text.data() + i * kLettersPerWord, &value, kLettersPerWord);
  }
  return text.substr(0, text.find('\0'));
}

}  // namespace

bool FlightEntry::same_call(const FlightEntry& other) const {
  return name == other.name && reduction == other.reduction && count == other.count && dtype == other.dtype &&
         root == other.root;
}

std::string FlightEntry::describe() const {
  return fleetrun::describe(
      {.name = name, .reduction = reduction, .count = count, .dtype = dtype, .root = root});
}

std::string describe(const CollectiveNote& note) {
  std::string text(note.name);
  if (note.name != "barrier") text += fmt::format(" of {} {}", note.count, describe(note.dtype));
  if (!note.reduction.empty()) text += fmt::format(" ({})", note.reduction);
  if (note.root != CollectiveNote::kNoRoot)
    text += fmt::format(" {} rank {}", note.reduction.empty() ? "from" : "to", note.root);
  return text;
}

const FlightEntry* FlightHistory::find(std::uint64_t number) const {
  const auto found =
      std::lower_bound(entries.begin(), entries.end(), number,
                       [](const FlightEntry& entry, auto wanted) { return entry.number < wanted; });
  return found == entries.end() || found->number != number ? nullptr : &*found;
}

void FlightRecord::name(std::string_view communicator) { put_letters(name_, std::size(name_), communicator); }

void FlightRecord::begin(std::uint64_t number, const CollectiveNote& note) {
  Slot& to = slot(number);
  put(to.number, 0);
  put_letters(to.name, std::size(to.name), note.name);
  put_letters(&to.reduction, 1, note.reduction);
  put(to.count, note.count);
  put(to.dtype_and_root,
      static_cast<std::uint64_t>(note.dtype) << 32U | static_cast<std::uint32_t>(note.root));
  put(to.end, 0);
  put(to.start, static_cast<std::uint64_t>(now_ns()));
  put(to.number, number);
  put(begun_, number);
}

void FlightRecord::end(std::uint64_t number) {
  put(slot(number).end, static_cast<std::uint64_t>(now_ns()));
  put(ended_, number);
}

FlightHistory FlightRecord::read() const {
  FlightHistory history = {.communicator = take_letters(name_, std::size(name_)),
                           .begun = take(begun_),
                           .ended = take(ended_),
                           .entries = {}};
  const std::uint64_t kept = std::min<std::uint64_t>(history.begun, kEntries);
  for (std::uint64_t i = 1; i <= kept; ++i) {
    const std::uint64_t number = history.begun - kept + i;
    const Slot& from = slots_[number % kEntries];
    if (take(from.number) != number) continue;
    const std::uint64_t dtype_and_root = take(from.dtype_and_root);
    FlightEntry entry = {.number = number,
                         .name = take_letters(from.name, std::size(from.name)),
                         .reduction = take_letters(&from.reduction, 1),
                         .count = take(from.count),
                         .dtype = static_cast<DType>(dtype_and_root >> 32U),
                         .root = static_cast<std::int32_t>(static_cast<std::uint32_t>(dtype_and_root)),
                         .start_ns = static_cast<std::int64_t>(take(from.start)),
                         .end_ns = static_cast<std::int64_t>(take(from.end))};
    const bool whole = take(from.number) == number && entry.dtype <= DType::u8;
    if (whole) history.entries.push_back(std::move(entry));
  }
  return history;
}

FlightRecord* FlightRecords::add(std::string_view communicator) {
  const auto free =
      std::find_if(records_.begin(), records_.end(), [](auto& record) { return !record.used(); });
  if (free == records_.end()) return nullptr;
  free->name(communicator);
  return &*free;
}

std::vector<FlightHistory> FlightRecords::read() const {
  std::vector<FlightHistory> histories;
  for (const FlightRecord& record : records_) {
    if (!record.used()) break;
    histories.push_back(record.read());
  }
  return histories;
}

}  // namespace fleetrun
