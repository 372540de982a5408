#include "launch/loop/lateness.h"

#include <fcntl.h>
#include <time.h>
#include <unistd.h>

#include <array>
#include <cstdlib>

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
  found_nothing();
  woke();
}

Clock::duration Lateness::spent() const { return processor_time() + read_waits(waits_.get()); }

void Lateness::found_nothing() {
  before_wait_ = spent();
  awake_.reset();
}

void Lateness::woke() {
  if (awake_) return;
  waking_ = spent() - before_wait_;
  awake_ = Clock::now();
}

// While it is awake, waits for a disk count, too.
Clock::duration Lateness::now() const {
  return awake_ ? waking_ + (Clock::now() - *awake_) : spent() - before_wait_;
}

}  // namespace fleetrun::launch
