#include "launch/process/descriptors.h"

#include <fcntl.h>
#include <linux/close_range.h>
#include <sys/resource.h>
#include <unistd.h>

namespace fleetrun::launch {
namespace {

constexpr rlim_t kMost = 1 << 20;  // the kernel's usual bound of the limit (fs.nr_open)

// ENOSYS: older than Linux 5.9. EPERM: some sandboxes' answer to what they do not know. EINVAL: no CLOEXEC before 5.11.
template <typename Act>
void for_each_from(int first, Act act) {
  rlimit limit{};
  const rlim_t end =
      ::getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur < kMost ? limit.rlim_cur : kMost;
  for (int fd = first; fd < static_cast<int>(end); ++fd) act(fd);
}

}  // namespace

void close_from(int first) {
  if (::close_range(static_cast<unsigned>(first), ~0U, 0) != 0)
    for_each_from(first, [](int fd) { ::close(fd); });
}

void close_on_exec_from(int first) {
  if (::close_range(static_cast<unsigned>(first), ~0U, CLOSE_RANGE_CLOEXEC) != 0)
    for_each_from(first, [](int fd) { ::fcntl(fd, F_SETFD, FD_CLOEXEC); });
}

}  // namespace fleetrun::launch
