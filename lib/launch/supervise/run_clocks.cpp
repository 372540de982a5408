#include "launch/supervise/run_clocks.h"

#include <utility>

namespace fleetrun::launch {

Clock::duration RunClocks::go_on(TimePoint now) {
  const Clock::duration stood = now - time(now);
  standing_since.reset();
  started += stood;
  put_off(stood);
  return stood;
}

void RunClocks::put_off(Clock::duration time) {
  deadline += time;
  if (timeout) *timeout += time;
  if (early_exit) *early_exit += time;
  if (doubt) *doubt += time;
}

}  // namespace fleetrun::launch
