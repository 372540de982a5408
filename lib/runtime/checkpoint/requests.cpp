#include "runtime/checkpoint/requests.h"

#include <atomic>
#include <csignal>

namespace fleetrun::runtime {
namespace {

// Of the process, as signals are. Lock-free, so that a handler may set them.
std::atomic<bool> save_wanted{false};
std::atomic<bool> stop_wanted{false};
constexpr std::int64_t kTogether =
    1'000'000'000;  // ns, within which a signal reaches all ranks; or a step, if that is longer
static_assert(std::atomic<bool>::is_always_lock_free);

void note(int signal) { (signal == SIGTERM ? stop_wanted : save_wanted) = true; }

void handle(int signal, unsigned flags) {
  struct sigaction action {};
  action.sa_handler = note;
  action.sa_flags = static_cast<int>(SA_RESTART | flags);
  ::sigaction(signal, &action, nullptr);
}

}  // namespace

void listen_for_requests() {
  handle(SIGUSR1, 0);
  handle(SIGTERM, SA_RESETHAND);
}

Requests take_requests() { return {save_wanted.exchange(false), stop_wanted}; }

bool SaveRequests::is_new(bool asked, std::int64_t now_ns) {
  const bool same = asked && expected_;
  if (asked || now_ns >= until_) expected_ = false;
  return asked && !same;
}

void SaveRequests::answered(bool asked, std::int64_t now_ns) {
  expected_ = !asked;
  until_ = now_ns + kTogether;
}

}  // namespace fleetrun::runtime
