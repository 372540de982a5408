// Where the time of this rank went, from the start of the run's first attempt on: what the training loop measures is
// booked, the rest is idle. The book is open on the rank's progress page, so that the launcher can read it at any time
// and the next attempt can go on with it.
#pragma once
#include <cstdint>
#include <string>

#include "base/run/progress_page.h"
#include "base/run/time_use.h"
#include "base/run/timeline.h"

namespace fleetrun::runtime {

class TimeBook {
 public:
  // The run began when the page says, or now.
  TimeBook(ProgressPage& page, std::int64_t now_ns);

  // The training begins at the place of a checkpoint, or at 0. In a later attempt, what an earlier one did up to that
  // checkpoint is taken over as it was booked, and all the time since then is booked as restart. A place is a number of samples
  // (place_in_training), since the number of a step changes with the number of ranks.
  // Returns whether it took that over.
  bool begin(int attempt, std::int64_t place, std::int64_t now_ns);

  void add(TimeUse use, std::int64_t nanoseconds) { spent_[static_cast<std::size_t>(use)] += nanoseconds; }
  std::int64_t spent(TimeUse use) const { return spent_[static_cast<std::size_t>(use)]; }  // nanoseconds
  void publish(std::int64_t now_ns);                                                       // on the page
  void keep(std::int64_t place, std::int64_t now_ns);  // for an attempt that goes on from here
  TimeUses until(std::int64_t now_ns) const;           // adds up to the time since the run began

 private:
  ProgressPage& page_;
  const std::int64_t start_ns_;
  TimeUses spent_{};  // without idle
};

// From here to the end of the block, booked as one use.
class Booking {
 public:
  Booking(TimeBook& book, TimeUse use) : book_(book), use_(use), start_ns_(monotonic_ns()) {}
  ~Booking() { book_.add(use_, monotonic_ns() - start_ns_); }
  Booking(const Booking&) = delete;
  Booking& operator=(const Booking&) = delete;

 private:
  TimeBook& book_;
  const TimeUse use_;
  const std::int64_t start_ns_;
};

// "goodput: compute 71.2 %, communication 11.3 %, data 0.4 %, checkpoint 2.1 %, restart 0.0 %, idle 15.0 % of 33.1 s";
// `times` are sums over that many ranks.
std::string describe_time(const TimeUses& times, int ranks);

// Of a whole, in tenths of a percent, rounded so that they add up to 1000.
std::array<int, kTimeUses> shares_of(const TimeUses& times);

}  // namespace fleetrun::runtime
