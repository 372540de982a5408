#include "launch/control_address.h"

#include <fcntl.h>
#include <sys/socket.h>

#include <cstring>

#include <fmt/format.h>

#include "launch/control_server.h"

namespace fleetrun::launch {

UniqueFd open_control_folder(const std::string& path) {
  return UniqueFd(::open(path.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
}

sockaddr_un address_in(const UniqueFd& folder) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  const std::string path = fmt::format("/proc/self/fd/{}/{}", folder.get(), kControlName);
  std::memcpy(address.sun_path, path.c_str(), path.size() + 1);
  return address;
}

}  // namespace fleetrun::launch
