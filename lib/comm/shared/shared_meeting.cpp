#include "comm/shared/shared_meeting.h"

#include <linux/futex.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <climits>
#include <ctime>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "comm/rendezvous/deadline.h"

namespace fleetrun::comm {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;
using Clock = std::chrono::steady_clock;

// Awake, a rank answers within a microsecond; from sleep it takes some tens. At first it keeps its core, if
// there is one for each rank; then it lets others have it, for the one that it waits for may be among them.
constexpr microseconds kPauseTime{20};
constexpr microseconds kAwakeTime{200};
constexpr int kLooksPerClock = 32;  // which takes as long as one of them or two
// How soon a rank is noticed that died without a word: promised is 1 s.
constexpr milliseconds kSleepSlice{100};

bool enough_cores(std::size_t ranks) {
  cpu_set_t cores;
  return ::sched_getaffinity(0, sizeof(cores), &cores) == 0 &&
         static_cast<std::size_t>(CPU_COUNT(&cores)) >= ranks;
}

// Between processes: not the private kind.
void futex_wait(std::atomic<std::uint32_t>& word, std::uint32_t seen, milliseconds at_most) {
  const timespec time = {at_most.count() / 1000, at_most.count() % 1000 * 1'000'000};
  ::syscall(SYS_futex, &word, FUTEX_WAIT, seen, &time, nullptr, 0);
}

void futex_wake_all(std::atomic<std::uint32_t>& word) {
  ::syscall(SYS_futex, &word, FUTEX_WAKE, INT_MAX, nullptr, nullptr, 0);
}

}  // namespace

SharedMeeting::SharedMeeting(int rank, std::vector<Place> places, milliseconds deadline)
    : rank_(rank),
      places_(std::move(places)),
      deadline_(deadline),
      pause_time_(enough_cores(places_.size()) ? kPauseTime : microseconds(0)) {
  for (const Place& place : places_) processes_.push_back({.fd = place.process, .events = POLLIN});
}

void SharedMeeting::post(const Posting& posting) {
  SharedControl& own = control(rank_);
  own.number.store(posting.number, std::memory_order_relaxed);
  own.postings[posting.number % 2] = posting;
}

const Posting& SharedMeeting::posting(int rank, std::uint64_t number) const {
  return control(rank).postings[number % 2];
}

std::optional<Absence> SharedMeeting::meet(const std::function<void()>& before_sleep) {
  ++meeting_;
  // Who counts itself among the sleepers and then sees the old count sleeps until we wake it: in the one order
  // of these operations either it sees the new count, or we see it.
  SharedControl& own = control(rank_);
  own.met.store(meeting_, std::memory_order_seq_cst);
  if (own.sleepers.load(std::memory_order_seq_cst) != 0) futex_wake_all(own.met);
  for (int other = 0; other < static_cast<int>(places_.size()); ++other) {
    if (has_come(other) || comes_while_awake(other)) continue;
    before_sleep();
    if (auto absence = sleep_until_it_comes(other)) return absence;
  }
  return std::nullopt;
}

// The counts wrap around; ranks are never more than one meeting apart.
bool SharedMeeting::has_come(int rank) const {
  return static_cast<std::int32_t>(control(rank).met.load(std::memory_order_acquire) - meeting_) >= 0;
}

bool SharedMeeting::comes_while_awake(int rank) const {
  const Clock::time_point start = Clock::now();
  for (Clock::duration waited{}; waited < kAwakeTime; waited = Clock::now() - start) {
    const bool keep_core = waited < pause_time_;
    if (!keep_core) ::sched_yield();
    for (int i = 0; i < kLooksPerClock && keep_core; ++i) {
      if (has_come(rank)) return true;
      __builtin_ia32_pause();
    }
    if (has_come(rank)) return true;
  }
  return false;
}

std::optional<Absence> SharedMeeting::sleep_until_it_comes(int rank) {
  Deadline deadline(deadline_);
  SharedControl& theirs = control(rank);
  while (true) {
    theirs.sleepers.fetch_add(1, std::memory_order_seq_cst);
    const std::uint32_t seen = theirs.met.load(std::memory_order_seq_cst);
    if (!has_come(rank)) futex_wait(theirs.met, seen, std::min(kSleepSlice, deadline.remaining()));
    theirs.sleepers.fetch_sub(1, std::memory_order_relaxed);
    if (has_come(rank)) return std::nullopt;
    if (auto gone = find_gone()) return gone;
    if (auto failed = find_failed()) return failed;
    deadline.look();
    if (deadline.passed()) return describe_late();
  }
}

// A rank that ended by itself: if it has not come by now, it never will.
std::optional<Absence> SharedMeeting::find_gone() {
  ::poll(processes_.data(), processes_.size(), 0);
  for (int other = 0; other < static_cast<int>(places_.size()); ++other) {
    const bool ended = processes_[static_cast<std::size_t>(other)].revents != 0;
    const bool left = control(other).state.load(std::memory_order_acquire) == SharedControl::kLeft;
    if ((!ended && !left) || has_come(other)) continue;
    // A process may have failed, said so and ended: then another rank is the reason.
    if (control(other).state.load(std::memory_order_acquire) >= 0) continue;
    return Absence{other, fmt::format("waited for rank {} ({})", name(other),
                                      left ? "it has left" : "its process has ended")};
  }
  return std::nullopt;
}

// A rank that failed because of another one: that one is the reason here too, unless it is ourselves.
std::optional<Absence> SharedMeeting::find_failed() const {
  for (int other = 0; other < static_cast<int>(places_.size()); ++other) {
    const std::int32_t reason = control(other).state.load(std::memory_order_acquire);
    if (reason < 0 || has_come(other)) continue;
    const std::uint64_t number = control(other).number.load(std::memory_order_relaxed);
    if (reason == rank_)
      return Absence{other, fmt::format("rank {} failed in collective {}, where it waited for this rank",
                                        name(other), number)};
    return Absence{reason, fmt::format("waited for rank {} (so did rank {}, in collective {})", name(reason),
                                       name(other), number)};
  }
  return std::nullopt;
}

Absence SharedMeeting::describe_late() const {
  std::vector<int> late, names;
  std::vector<std::string> states;
  for (int other = 0; other < static_cast<int>(places_.size()); ++other) {
    if (has_come(other)) continue;
    late.push_back(other);
    names.push_back(name(other));
    states.push_back(fmt::format("collective {}", control(other).number.load(std::memory_order_relaxed)));
  }
  if (late.empty()) {  // they came just now: too late for this rank
    late.push_back(rank_);
    names.push_back(name(rank_));
  }
  return {late.front(),
          fmt::format("waited for rank {} (nothing for {:g} s; last seen in {})", fmt::join(names, ", "),
                      Deadline(deadline_).total_seconds(), fmt::join(states, ", "))};
}

void SharedMeeting::leave(std::int32_t waited_for) {
  SharedControl& own = control(rank_);
  std::int32_t here = SharedControl::kHere;  // the first reason stays
  own.state.compare_exchange_strong(here, waited_for, std::memory_order_release);
  futex_wake_all(own.met);
}

}  // namespace fleetrun::comm
