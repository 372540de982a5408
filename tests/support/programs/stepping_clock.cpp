// Preloaded, it makes the clock of deadlines stand an hour later for each byte of the file FLEETRUN_TEST_HOURS.
#include <dlfcn.h>
#include <sys/stat.h>
#include <time.h>

#include <cstdlib>

extern "C" int clock_gettime(clockid_t clock, timespec* time) {
  using Function = int (*)(clockid_t, timespec*);
  static const auto real = reinterpret_cast<Function>(::dlsym(RTLD_NEXT, "clock_gettime"));
  static const char* const hours = std::getenv("FLEETRUN_TEST_HOURS");
  const int result = real(clock, time);
  struct stat facts {};
  if (clock == CLOCK_MONOTONIC && hours != nullptr && ::stat(hours, &facts) == 0)
    time->tv_sec += 3600 * facts.st_size;
  return result;
}
