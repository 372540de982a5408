#include "launch/loop/lateness.h"

#include <fcntl.h>
#include <time.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <utility>

namespace fleetrun::launch {
namespace {

Clock::duration processor_time() {
  timespec time{};
  ::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
  return std::chrono::seconds(time.tv_sec) + std::chrono::nanoseconds(time.tv_nsec);
}

// The second number of the file: nanoseconds. Documentation/scheduler/sched-stats.rst.
Clock::duration read_waits(int fd) {
  std::array<char, 128> text{};
  if (::pread(fd, text.data(), text.size() - 1, 0) <= 0) return {};
  char* rest = nullptr;
  std::strtoull(text.data(), &rest, 10);
  return std::chrono::nanoseconds(std::strtoull(rest, nullptr, 10));
}

}  // namespace

Lateness::Lateness() : waits_(::open("/proc/self/schedstat", O_RDONLY | O_CLOEXEC)) {
  last_look_ = look_before_ = spent();
}

Clock::duration Lateness::spent() const { return processor_time() + read_waits(waits_.get()); }

void Lateness::look() { look_before_ = std::exchange(last_look_, spent()); }

// The last look may have found the event already. The one before it did not.
Clock::duration Lateness::now() const { return spent() - look_before_; }

}  // namespace fleetrun::launch
