// How long a rank did nothing but communicate: a collective was under way, and no other op was. What is left of
// communication when that which goes on beside computation is not counted.
#pragma once
#include <cstdint>
#include <mutex>

#include "base/run/timeline.h"

namespace fleetrun::runtime {

class Exposure {
 public:
  std::int64_t begin(bool collective) { return change(collective, 1); }  // an op begins; the time
  std::int64_t end(bool collective) { return change(collective, -1); }

  std::int64_t nanoseconds() const {  // so far, of what has ended
    const std::lock_guard lock(mutex_);
    return total_;
  }

 private:
  std::int64_t change(bool collective, int by) {
    const std::lock_guard lock(mutex_);
    const std::int64_t now = monotonic_ns();
    if (collectives_ > 0 && others_ == 0) total_ += now - since_;
    (collective ? collectives_ : others_) += by;
    since_ = now;
    return now;
  }

  mutable std::mutex mutex_;
  int collectives_ = 0, others_ = 0;  // under way
  std::int64_t since_ = 0;            // the last change
  std::int64_t total_ = 0;
};

}  // namespace fleetrun::runtime
