#include "runtime/checkpoint/requests.h"

#include <unistd.h>

#include <array>
#include <atomic>
#include <csignal>
#include <thread>

#include "base/run/timeline.h"

namespace fleetrun::runtime {
namespace {

constexpr std::int64_t kTogether =
    1'000'000'000;  // ns, within which a signal reaches all ranks; or a step, if that is longer

constexpr auto kLookPause = std::chrono::milliseconds(5);  // a signal ends it early

// Of the process, as signals are. Lock-free, so that a handler may set them.
std::atomic<bool> save_wanted{false};
std::array<std::atomic<std::int64_t>, 2> stop_wanted_at{};  // ns; by SIGTERM and by SIGINT; 0: not
static_assert(std::atomic<bool>::is_always_lock_free && std::atomic<std::int64_t>::is_always_lock_free);

void note_save(int) { save_wanted = true; }

bool stop_is_wanted() { return stop_wanted_at[0] != 0 || stop_wanted_at[1] != 0; }

// Who stops a whole service or job step signals the launcher and each rank, and the launcher passes it on. A SIGTERM after a SIGINT
// asks for nothing new.
void note_stop(int signal) {
  const std::int64_t now = monotonic_ns();
  std::int64_t first = 0;
  auto& wanted_at = stop_wanted_at[signal == SIGINT ? 1 : 0];
  if (wanted_at.compare_exchange_strong(first, now) || now - first < kTogether) return;
  die_of(signal);
}

void handle(int signal, void (*handler)(int)) {
  struct sigaction action {};
  action.sa_handler = handler;
  action.sa_flags = SA_RESTART;
  ::sigaction(signal, &action, nullptr);
}

}  // namespace

void listen_for_save_requests() { handle(SIGUSR1, note_save); }

void listen_for_stop_requests() {
  for (const int signal : {SIGTERM, SIGINT}) handle(signal, note_stop);
}

Requests take_requests() { return {save_wanted.exchange(false), stop_is_wanted()}; }

void die_of(int signal) {
  handle(signal, SIG_DFL);
  ::kill(::getpid(), signal);  // from a handler: as soon as that returns
}

void end_stopped_rank(std::chrono::nanoseconds patience) {
  const std::int64_t end = monotonic_ns() + patience.count();
  while (!stop_is_wanted() && monotonic_ns() < end) std::this_thread::sleep_for(kLookPause);
  die_of(stop_wanted_at[0] == 0 && stop_wanted_at[1] != 0 ? SIGINT : SIGTERM);
  while (true) ::pause();  // another thread takes the signal
}

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
