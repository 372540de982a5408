#include "launch/supervise/run_clocks.h"

#include <utility>

namespace fleetrun::launch {

Clock::duration RunClocks::go_on(TimePoint now) {
  const Clock::duration stood = now - time(now);
  standing_since.reset();
  started += stood;
  deadline += stood;
  if (timeout) *timeout += stood;
  if (early_exit) *early_exit += stood;
  return stood;
}

}  // namespace fleetrun::launch
