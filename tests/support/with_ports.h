// A network of its own, with loopback, where the kernel picks the ports of sockets from a given range only.
#pragma once
#include <net/if.h>
#include <netinet/in.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include <cstring>
#include <fstream>
#include <functional>
#include <future>
#include <stdexcept>

#include "base/system/unique_fd.h"

namespace fleetrun::testing {

inline void bring_loopback_up() {
  const UniqueFd fd(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  ifreq request{};
  std::strcpy(request.ifr_name, "lo");
  request.ifr_flags = IFF_UP;
  if (::ioctl(fd.get(), SIOCSIFFLAGS, &request) != 0) throw std::runtime_error("loopback does not come up");
}

// Runs `work` there, on a thread of its own; threads that it starts are there, too. `first_and_last`: "40000 40063".
// False, and nothing ran: making a network takes root, and is not allowed everywhere.
inline bool with_ports(const char* first_and_last, const std::function<void()>& work) {
  return std::async(std::launch::async,
                    [&] {
                      if (::unshare(CLONE_NEWNET) != 0) return false;
                      bring_loopback_up();
                      std::ofstream("/proc/sys/net/ipv4/ip_local_port_range") << first_and_last << std::flush;
                      work();
                      return true;
                    })
      .get();
}

}  // namespace fleetrun::testing
