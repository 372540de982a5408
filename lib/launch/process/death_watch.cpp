#include "launch/process/death_watch.h"

#include <sys/epoll.h>

#include <array>
#include <cerrno>

#include <fmt/format.h>

#include "base/error/error.h"

namespace fleetrun::launch {

DeathWatch::DeathWatch() : epoll_(::epoll_create1(EPOLL_CLOEXEC)) {
  if (!epoll_)
    throw Error(ErrorKind::os, fmt::format("making an epoll for the workers: {}", describe_errno(errno)));
}

// Edge-triggered, so that deaths keep the order in which they happened: level-triggered, each look would put them at the end again.
int DeathWatch::watch(const UniqueFd& pidfd, std::size_t rank) {
  epoll_event event{.events = EPOLLIN | EPOLLET, .data = {.u64 = rank}};
  return ::epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, pidfd.get(), &event) == 0 ? 0 : errno;
}

void DeathWatch::forget(const UniqueFd& pidfd) {
  if (pidfd) ::epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, pidfd.get(), nullptr);
}

std::vector<std::size_t> DeathWatch::take() {
  std::vector<std::size_t> ranks;
  std::array<epoll_event, 64> events;
  int count = 0;
  do {
    count = ::epoll_wait(epoll_.get(), events.data(), static_cast<int>(events.size()), 0);
    for (int i = 0; i < count; ++i) ranks.push_back(events[static_cast<std::size_t>(i)].data.u64);
  } while (count == static_cast<int>(events.size()));
  return ranks;
}

}  // namespace fleetrun::launch
