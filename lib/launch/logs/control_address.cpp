#include "launch/logs/control_address.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include <fmt/format.h>

#include "launch/logs/log_names.h"

namespace fleetrun::launch {

ControlAddress control_address(const std::string& path) {
  ControlAddress found = {UniqueFd(::open(path.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC))};
  if (!found.folder) return found;
  std::string folder = fmt::format("/proc/self/fd/{}", found.folder.get());
  if (::access(folder.c_str(), X_OK) != 0) folder = path;
  const std::string name = fmt::format("{}/{}", folder, kControlName);
  if (name.size() >= sizeof found.address.sun_path) {
    found.folder.reset();
    errno = ENAMETOOLONG;
    return found;
  }
  found.address.sun_family = AF_UNIX;
  std::memcpy(found.address.sun_path, name.c_str(), name.size() + 1);
  return found;
}

// EAGAIN: a run that is stopped takes no more connections, and would keep us waiting.
bool is_answered(const std::string& folder) {
  const ControlAddress found = control_address(folder);
  const UniqueFd socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  return found.folder && socket &&
         (::connect(socket.get(), reinterpret_cast<const sockaddr*>(&found.address), sizeof found.address) ==
              0 ||
          errno == EAGAIN);
}

}  // namespace fleetrun::launch
