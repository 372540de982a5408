// Preloaded, it makes the time of day jump forth and back by an hour with every look at it.
#include <dlfcn.h>
#include <time.h>

#include <atomic>

extern "C" int clock_gettime(clockid_t clock, timespec* time) {
  using Function = int (*)(clockid_t, timespec*);
  static const auto real = reinterpret_cast<Function>(::dlsym(RTLD_NEXT, "clock_gettime"));
  static std::atomic<unsigned> looks{0};
  const int result = real(clock, time);
  if (clock == CLOCK_REALTIME) time->tv_sec += looks++ % 2 == 0 ? 3600 : -3600;
  return result;
}
